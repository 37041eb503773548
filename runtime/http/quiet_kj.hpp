#pragma once

#include <kj/exception.h>

namespace lethe {

/// On the stack of a thread that runs KJ, whose own callback prints what it meets, and with it what
/// others sent.
class quiet_kj final : public kj::ExceptionCallback {
 public:
  void logMessage(kj::LogSeverity, const char*, int, int, kj::String&&) override {}
  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }
};

/// Whether f went through; what KJ throws is dropped unread.
template <class F>
bool quietly(F&& f) {
  quiet_kj callback;
  return kj::runCatchingExceptions(kj::fwd<F>(f)) == nullptr;
}

}  // namespace lethe
