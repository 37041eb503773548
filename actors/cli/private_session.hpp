#pragma once

#include <string>

#include "actors/cli/waiting_word.hpp"
#include "runtime/client/private_client.hpp"

namespace lethe {

/// A client from a trust file. Says on standard error what nobody vouches for, before anything is
/// asked, and to people what it waits for.
call_result<std::unique_ptr<private_client>> open_private(const std::string& trust,
                                                          client_options options = {},
                                                          bool explains = false);

/// Tells people when an answer takes long: of a call's steps and its answer's first words.
class answer_waiting {
 public:
  explicit answer_waiting(bool explains) : word_(explains) {}
  /// Passes steps on to who explains them, if anybody does.
  call_observer observer(bool explains);
  void answered() { word_.ends(); }

 private:
  waiting_word word_;
};

/// Prints each step to standard error, as it happens.
call_observer explaining();
/// What each part has seen of a call.
void explain_views(const private_answer& answer);

/// Chat messages as the body of a request; `model` is what the roster has.
std::string chat_body(const std::string& model,
                      const std::vector<std::pair<std::string, std::string>>& messages,
                      bool stream);
/// What most of the roster's nodes serve.
std::string model_of(const cluster_state& state);

}  // namespace lethe
