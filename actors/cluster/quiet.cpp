#include "actors/cluster/quiet.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>

namespace lethe {

namespace {

std::string name_of(const std::type_info* type) {
  if (!type) return "an unknown exception";
  int failed = 0;
  char* plain = abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed);
  std::string name = failed == 0 ? plain : type->name();
  std::free(plain);
  return name;
}

}  // namespace

caf::error broken_by(const std::exception_ptr& thrown) {
  std::string kind;
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    kind = name_of(abi::__cxa_current_exception_type());
  }
  return caf::make_error(caf::sec::runtime_error, kind);
}

std::string why_ended(const caf::error& reason) {
  if (!reason) return "it left";
  const auto& about = reason.context();
  if (reason == caf::sec::runtime_error && about.match_elements<std::string>())
    return fmt::format("it broke: {}", about.get_as<std::string>(0));
  if (reason == caf::exit_reason::kill) return "it was killed";
  if (reason == caf::exit_reason::remote_link_unreachable)
    return "its process is gone or does not answer";
  return fmt::format("it ended ({} {})", to_string(reason.category()), reason.code());
}

void be_quiet(caf::scheduled_actor* self, std::function<void(const caf::error&)> last_words) {
  self->set_default_handler(refuse_quietly);
  self->set_exception_handler(
      [last_words = std::move(last_words)](caf::scheduled_actor*, std::exception_ptr& thrown) {
        auto why = broken_by(thrown);
        try {
          if (last_words) last_words(why);
        } catch (...) {  // it ends all the same
        }
        return why;
      });
}

}  // namespace lethe
