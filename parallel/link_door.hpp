#pragma once

#include <vector>

#include "parallel/link_address.hpp"
#include "parallel/mesh.hpp"

namespace lethe {

/// Where the other ranks come in while a group forms. Whoever cannot prove that it belongs here is
/// sent away, and the group goes on waiting: strangers may delay nothing and end nothing.
class link_door {
 public:
  static result<std::unique_ptr<link_door>> open(link_address at);

  const link_address& address() const { return address_; }
  /// Calls a rank at its door.
  result<void> call(mesh& into, uint32_t rank, lane on, const link_address& at, deadline until);
  /// Lets ranks in until that one is there.
  result<void> await(mesh& into, uint32_t rank, lane on, deadline until);

 private:
  /// Somebody who is not in yet.
  struct visitor {
    explicit visitor(owned_fd by) : fd(std::move(by)) {}
    owned_fd fd;
    hello theirs{}, ours{};
    proof given{};
    size_t got = 0;  // of hello and proof
    caller who{};
  };
  static constexpr size_t visitors_max = 64;

  link_door(owned_fd listener, const link_address& at)
      : listener_(std::move(listener)), address_(at) {}
  void let_in(mesh& into, deadline until);
  bool hear(mesh& into, visitor& v);
  bool refuse(error why);
  bool answer(mesh& into, visitor& v);
  bool admit(mesh& into, visitor& v);

  owned_fd listener_;
  link_address address_;
  std::vector<visitor> visitors_;
  std::string refused_;  // whom, last
};

}  // namespace lethe
