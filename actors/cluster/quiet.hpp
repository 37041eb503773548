#pragma once

#include <caf/all.hpp>
#include <string>

namespace lethe {

/// CAF's own default handler prints the message.
inline caf::result<caf::message> refuse_quietly(caf::scheduled_actor*, caf::message_view&) {
  return caf::sec::unexpected_message;
}

/// The error that an actor ends with when a handler of it throws: the kind of exception. CAF's own
/// handler prints what the exception says, which may quote anything.
caf::error broken_by(const std::exception_ptr& thrown);

/// For an operator: why an actor ended.
std::string why_ended(const caf::error& reason);

/// Every actor's first call: it prints nothing of what it is sent or what goes wrong with it.
/// `last_words` is called when a handler has thrown, before the actor's state goes.
void be_quiet(caf::scheduled_actor* self, std::function<void(const caf::error&)> last_words = {});

}  // namespace lethe
