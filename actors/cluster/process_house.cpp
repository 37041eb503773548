#include "actors/cluster/process_house.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "actors/cluster/open_engine.hpp"
#include "actors/cluster/tls_peers.hpp"
#include "runtime/hardening/harden.hpp"
#include "runtime/telemetry/telemetry_log.hpp"

extern char** environ;

namespace lethe {

namespace {

// Descriptors of a child: its order, in whose place it leaves its last words, and a pipe that ends
// when its parent does.
constexpr int order_fd = 3, life_fd = 4;

/// A descriptor that children don't inherit by themselves.
class held_fd {
 public:
  explicit held_fd(int fd) : fd_(fd) {}
  ~held_fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  held_fd(const held_fd&) = delete;
  held_fd& operator=(const held_fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

int frame_in_memory(const std::vector<std::byte>& frame) {
  int fd = ::memfd_create("order", MFD_CLOEXEC);
  if (fd < 0) return fd;
  if (::write(fd, frame.data(), frame.size()) != ssize_t(frame.size()) ||
      ::lseek(fd, 0, SEEK_SET) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

/// Held by this process for all its life and inherited by nobody: its other end, which children
/// have, ends with us.
int life_pipe() {
  static const int read_end = [] {
    int both[2];
    return ::pipe2(both, O_CLOEXEC) == 0 ? both[0] : -1;
  }();
  return read_end;
}

constexpr size_t last_words_max = 4096;
constexpr std::string_view last_words_mark = "last words: ";

/// Why this process, a child, ends. Its parent reads it however the network fares.
void leave_last_words(const std::string& why) {
  std::string text = std::string(last_words_mark) + why;
  text.resize(std::min(text.size(), last_words_max));
  if (::ftruncate(order_fd, 0) == 0) (void)!::pwrite(order_fd, text.data(), text.size(), 0);
}

/// Empty if there are none: the order is still there.
std::string last_words(int order) {
  std::string text(last_words_max, '\0');
  ssize_t got = ::pread(order, text.data(), text.size(), 0);
  text.resize(size_t(std::max<ssize_t>(got, 0)));
  return text.starts_with(last_words_mark) ? text.substr(last_words_mark.size()) : "";
}

std::string how_it_ended(const siginfo_t& info, const std::string& words) {
  if (info.si_code == CLD_EXITED)
    return words.empty() ? fmt::format("its process ended with status {}", info.si_status) : words;
  return fmt::format("its process was ended by signal {} ({})", info.si_status,
                     ::strsignal(info.si_status));
}

result<int> spawn_child(const std::vector<std::string>& words, int order) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, order, order_fd);
  posix_spawn_file_actions_adddup2(&files, life_pipe(), life_fd);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setpgroup(&how, 0);  // the terminal's Ctrl-C is for the parent
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  int failed = ::posix_spawn(&pid, "/proc/self/exe", &files, &how, argv.data(), environ);
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  if (failed) return fail("an engine's process cannot be started: {}", std::strerror(failed));
  return pid;
}

}  // namespace

process_house::~process_house() {
  {
    std::lock_guard guard(lock_);
    for (auto [id, pid] : running_) ::kill(pid, SIGKILL);
  }
  for (auto& w : waiters_) w.thread.join();
}

/// Of children that ended: each would keep its stack.
void process_house::join_waiters() {
  std::erase_if(waiters_, [](waiter& w) {
    if (!w.done) return false;
    w.thread.join();
    return true;
  });
}

result<void> process_house::start(const wire<schema::StartEngine>& order, uint16_t id,
                                  directory_actor, ended then) {
  auto memory = std::make_shared<const held_fd>(frame_in_memory(order.frame));
  if (memory->get() < 0 || life_pipe() < 0)
    return fail("an engine's process cannot be started: {}", std::strerror(errno));
  auto pid = spawn_child({"lethe", "engine-process", "--directory",
                          fmt::format("{}:{}", directory_.address, directory_.port), "--leader",
                          directory_.leader, "--certificate", tls_.certificate.string(), "--key",
                          tls_.key.string(), "--authority", tls_.authority.string()},
                         memory->get());
  if (!pid) return pid.why();
  join_waiters();
  std::lock_guard guard(lock_);
  running_[id] = *pid;
  auto& waiter = waiters_.emplace_back();
  waiter.thread = std::thread([this, id, child = *pid, memory, then = std::move(then), &waiter] {
    auto how = wait_for(id, child);
    then(how_it_ended(how, last_words(memory->get())));
    waiter.done = true;
  });
  return {};
}

/// The pid stays taken until the child is reaped, so nobody else can be killed in its place.
siginfo_t process_house::wait_for(uint16_t id, int pid) {
  siginfo_t info{};
  while (::waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  std::lock_guard guard(lock_);
  auto found = running_.find(id);
  if (found != running_.end() && found->second == pid) running_.erase(found);
  ::waitpid(pid, nullptr, 0);
  return info;
}

void process_house::kill(uint16_t id) {
  std::lock_guard guard(lock_);
  auto found = running_.find(id);
  if (found != running_.end()) ::kill(found->second, SIGKILL);
}

namespace {

result<wire<schema::StartEngine>> read_order() {
  wire<schema::StartEngine> order;
  order.frame.resize(frame_bytes_max<schema::StartEngine>);
  ssize_t got = ::read(order_fd, order.frame.data(), order.frame.size());
  if (got <= 0) return fail("there is no order; `lethe up` starts engines, not people");
  order.frame.resize(size_t(got));
  return order;
}

void end_with_parent() {
  std::thread([] {
    char nothing;
    while (::read(life_fd, &nothing, 1) < 0 && errno == EINTR) {
    }
    ::_exit(0);
  }).detach();
}

/// Everything is loaded; its parent says what can't be locked.
result<void> close_engine() {
  lock_heaps();
  return filter_calls(new_code::refused);
}

int refuse_to_run(const std::string& why) {
  leave_last_words(why);
  say_once(telemetry_event(schema::Event::ENGINE_CANNOT_RUN));
  return 1;
}

}  // namespace

int run_engine_process(const directory_address& at, const node_tls& tls) {
  auto order = read_order();
  if (!order) return refuse_to_run(order.why().text);
  end_with_parent();
  allow_peers({at.leader});
  // The supervisor that started this process misses the directory in time, and ends it.
  node_options options{.tls = tls};
  tracer_config records;
  bool hardens = true;
  auto read = unpack(*order, [&](schema::StartEngine::Reader r) {
    hardens = r.getSpec().getProfile() != schema::Profile::LAB;
    options.heartbeat_ms = r.getSpec().getHealth().getHeartbeatMs();
    records = trace_config_of(r.getSpec().getTrace());
  });
  if (!read) return refuse_to_run(read.why().text);
  if (hardens)
    if (auto hard = refuse_dumps(); !hard) return refuse_to_run(hard.why().text);
  auto config = node_config::make(options);
  if (!config) return refuse_to_run(config.why().text);
  tracer trace(std::move(records));
  caf::actor_system sys(**config);
  auto directory = connect(sys, at.address, at.port);
  // CAF would wait for what it began.
  if (!directory.who)
    ::_exit(
        refuse_to_run(rendered(telemetry_event(schema::Event::NOT_JOINED, directory.fault), {})));
  auto opener = std::make_shared<engine_opener>();
  auto setup = setup_of(*order, opener, &trace);
  setup.open = [open = std::move(setup.open), hardens](load_progress progress) {
    auto opened = open(std::move(progress));
    if (opened && hardens)
      if (auto closed = close_engine(); !closed) opened = closed.why();
    if (!opened) leave_last_words(opened.why().text);
    return opened;
  };
  auto engine = sys.spawn<caf::detached>(run_engine, std::move(setup), directory.who);
  caf::scoped_actor self(sys);
  self->monitor(engine);
  self->monitor(directory.who);
  bool served = false;
  self->receive([&](const caf::down_msg& d) {
    served = d.source == engine.address() && d.reason == caf::exit_reason::normal;
    if (d.reason == caf::sec::runtime_error) leave_last_words(why_ended(d.reason));
  });
  // Words wait for the network: an answer to later ones says that the engine's last were read.
  auto status = pack<schema::ControlAsk>({}, [](schema::ControlAsk::Builder b) { b.setStatus(); });
  if (!served)
    self->request(directory.who, std::chrono::seconds(2), status)
        .receive([](const wire<schema::ControlAnswer>&) {}, [](caf::error&) {});
  // Whatever it still held ends with the process.
  std::fflush(nullptr);
  ::_exit(served ? 0 : 1);
}

}  // namespace lethe
