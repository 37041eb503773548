#include "actors/cluster/control_socket.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace lethe {

namespace fs = std::filesystem;

namespace {

constexpr int patience_ms = 5'000;          // for the other side's bytes
constexpr int answer_patience_ms = 60'000;  // an answer may have to ask other hosts

result<fs::path> control_folder() {
  const char* own = std::getenv("XDG_RUNTIME_DIR");
  fs::path folder = own && *own ? fs::path(own) / "lethe"
                                : fs::temp_directory_path() / fmt::format("lethe-{}", ::getuid());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail("{}: cannot be made: {}", folder.string(), std::strerror(errno));
  struct stat found {};
  bool good = ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
              found.st_uid == ::getuid() && (found.st_mode & 077) == 0;
  if (!good)
    return fail("{}: must be a folder that only you can open (chmod 700), for control sockets",
                folder.string());
  return folder;
}

bool fill(sockaddr_un& address, const fs::path& path) {
  address.sun_family = AF_UNIX;
  std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return true;
}

bool await(int fd, short what, int ms) {
  pollfd p{.fd = fd, .events = what, .revents = 0};
  int got;
  do got = ::poll(&p, 1, ms);
  while (got < 0 && errno == EINTR);
  return got > 0;
}

/// For all of a frame: whoever sends or takes it byte by byte does not get longer.
class deadline {
 public:
  explicit deadline(int ms) : at_(clock::now() + std::chrono::milliseconds(ms)) {}
  int left_ms() const {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(at_ - clock::now()).count();
    return int(std::max<int64_t>(left, 0));
  }

 private:
  using clock = std::chrono::steady_clock;
  clock::time_point at_;
};

bool send_all(int fd, bytes_view b, const deadline& until) {
  while (!b.empty()) {
    if (!await(fd, POLLOUT, until.left_ms())) return false;
    ssize_t n = ::send(fd, b.data(), b.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    b = b.subspan(size_t(n));
  }
  return true;
}

bool receive_all(int fd, std::span<std::byte> b, const deadline& until) {
  while (!b.empty()) {
    if (!await(fd, POLLIN, until.left_ms())) return false;
    ssize_t n = ::recv(fd, b.data(), b.size(), 0);
    if (n <= 0) return false;
    b = b.subspan(size_t(n));
  }
  return true;
}

bool send_frame(int fd, const std::vector<std::byte>& frame) {
  uint32_t size = uint32_t(frame.size());
  deadline until(patience_ms);
  return send_all(fd, std::as_bytes(std::span(&size, 1)), until) && send_all(fd, frame, until);
}

bool receive_frame(int fd, size_t most, std::vector<std::byte>& frame, int ms) {
  uint32_t size = 0;
  if (!receive_all(fd, std::as_writable_bytes(std::span(&size, 1)), deadline(ms)) || size > most)
    return false;
  frame.resize(size);
  return receive_all(fd, frame, deadline(patience_ms));
}

/// A connected socket, or -1.
int connect_to(const fs::path& path) {
  sockaddr_un address{};
  if (!fill(address, path)) return -1;
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

}  // namespace

result<fs::path> control_path(const std::string& cluster) {
  auto folder = control_folder();
  if (!folder) return folder.why();
  return *folder / (cluster + ".sock");
}

std::vector<std::string> running_clusters() {
  std::vector<std::string> names;
  auto folder = control_folder();
  if (!folder) return names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(*folder, ignored)) {
    int fd = entry.path().extension() == ".sock" ? connect_to(entry.path()) : -1;
    if (fd < 0) continue;
    ::close(fd);
    names.push_back(entry.path().stem().string());
  }
  return names;
}

result<std::unique_ptr<control_server>> control_server::start(const std::string& cluster,
                                                              answerer answer) {
  auto path = control_path(cluster);
  if (!path) return path.why();
  if (int other = connect_to(*path); other >= 0) {
    ::close(other);
    return fail(
        "a cluster named \"{}\" runs here already; lethe down --cluster {} ends it, or give this "
        "one another name",
        cluster, cluster);
  }
  ::unlink(path->c_str());  // of one that died
  sockaddr_un address{};
  if (!fill(address, *path)) return fail("{}: too long for a socket", path->string());
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, 16) != 0) {
    auto why = fail("{}: cannot listen: {}", path->string(), std::strerror(errno));
    if (fd >= 0) ::close(fd);
    return why;
  }
  int wake = ::eventfd(0, EFD_CLOEXEC);
  return std::unique_ptr<control_server>(new control_server(fd, wake, *path, std::move(answer)));
}

control_server::control_server(int fd, int wake, fs::path path, answerer answer)
    : fd_(fd), wake_(wake), path_(std::move(path)), answer_(std::move(answer)), thread_([this] {
        run();
      }) {}

void control_server::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  uint64_t one = 1;
  if (::write(wake_, &one, sizeof one) < 0) stopping_ = true;  // its poll also times out
  thread_.join();
}

control_server::~control_server() {
  stop();
  std::error_code ignored;
  fs::remove(path_, ignored);  // before it refuses: who is refused may put another there
  ::close(fd_);
  ::close(wake_);
}

void control_server::run() {
  while (!stopping_) {
    pollfd both[2] = {{fd_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (::poll(both, 2, 1000) <= 0) continue;
    int connection = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    serve(connection);
    ::close(connection);
  }
}

void control_server::serve(int connection) try {
  wire<schema::ControlAsk> ask;
  if (!receive_frame(connection, limits::control_ask_bytes_max, ask.frame, patience_ms)) return;
  send_frame(connection, answer_(ask).frame);
} catch (const std::exception&) {
  // No memory for this one; its client hears that nobody answers.
}

result<wire<schema::ControlAnswer>> ask_cluster(const std::string& cluster,
                                                const wire<schema::ControlAsk>& ask) {
  auto path = control_path(cluster);
  if (!path) return path.why();
  int fd = connect_to(*path);
  if (fd < 0)
    return fail("no cluster named \"{}\" runs on this host; lethe up FILE starts one", cluster);
  wire<schema::ControlAnswer> answer;
  bool good = send_frame(fd, ask.frame) &&
              receive_frame(fd, limits::control_bytes_max, answer.frame, answer_patience_ms);
  ::close(fd);
  if (!good) return fail("cluster \"{}\": it does not answer", cluster);
  return answer;
}

}  // namespace lethe
