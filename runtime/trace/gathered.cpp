#include "runtime/trace/gathered.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/mapped_file.hpp"
#include "runtime/base/whole_file.hpp"
#include "runtime/trace/trace_limits.hpp"
#include "schemas/recording.capnp.h"

namespace lethe {

namespace {

constexpr std::string_view mark = "LetheTr1";     // 8 bytes, so that the frame behind it is aligned
constexpr uint64_t time_max = uint64_t{1} << 60;  // 36 years of a steady clock, in nanoseconds
constexpr uint64_t unix_max = uint64_t{1} << 62;  // the year 2116

/// A host's name goes to a terminal.
std::string printable(capnp::Text::Reader text) {
  std::string out(text.begin(), std::min<size_t>(text.size(), 253));
  for (char& c : out)
    if (c <= ' ' || c > '~') c = '?';
  return out;
}

bool sane(int64_t difference) {
  return difference <= int64_t(time_max) && difference >= -int64_t(time_max);
}

trace_record record_from(schema::TraceRecords::Record::Reader r) {
  return {.at_ns = r.getAtNs(),
          .trace = r.getTrace(),
          .lamport = r.getLamport(),
          .sender = r.getSender(),
          .receiver = r.getReceiver(),
          .type = r.getType(),
          .queued_ns = r.getQueuedNs(),
          .handled_ns = r.getHandledNs(),
          .bytes = r.getBytes()};
}

result<traced_process> process_from(schema::TraceRecords::Reader from) {
  traced_process p{.host = printable(from.getHost()),
                   .pid = from.getPid(),
                   .mode = trace_mode(std::min<uint16_t>(uint16_t(from.getMode()), 2)),
                   .lost = from.getLost(),
                   .now_ns = from.getNowNs(),
                   .offset_ns = from.getOffsetNs(),
                   .error_ns = from.getErrorNs()};
  bool good = p.now_ns <= time_max && p.error_ns <= time_max && sane(p.offset_ns);
  auto records = from.getRecords();
  p.records.reserve(records.size());
  for (auto r : records) {
    p.records.push_back(record_from(r));
    const auto& known = p.records.back();
    good &= known.at_ns <= time_max && known.handled_ns <= time_max && sane(known.queued_ns);
  }
  if (!good)
    return fail("trace: process {} of host {} states times that no clock shows", p.pid, p.host);
  return p;
}

void write_process(schema::TraceRecords::Builder to, const traced_process& p) {
  to.setHost(p.host);
  to.setPid(p.pid);
  to.setMode(schema::TraceMode(p.mode));
  to.setLost(p.lost);
  to.setNowNs(p.now_ns);
  to.setOffsetNs(p.offset_ns);
  to.setErrorNs(p.error_ns);
  auto list = to.initRecords(uint32_t(p.records.size()));
  for (uint32_t i = 0; i < p.records.size(); ++i) {
    const auto& r = p.records[i];
    auto record = list[i];
    record.setAtNs(r.at_ns);
    record.setTrace(r.trace);
    record.setLamport(r.lamport);
    record.setSender(r.sender);
    record.setReceiver(r.receiver);
    record.setType(r.type);
    record.setBytes(r.bytes);
    record.setQueuedNs(r.queued_ns);
    record.setHandledNs(r.handled_ns);
  }
}

result<gathered> read_frame(bytes_view frame) try {
  // Lists are counted once as they are opened; twice the frame is enough for any honest one.
  capnp::ReaderOptions bounds{.traversalLimitInWords = frame.size() / 4 + 64, .nestingLimit = 16};
  capnp::FlatArrayMessageReader reader(
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(frame.data()),
                   frame.size() / sizeof(capnp::word)),
      bounds);
  auto root = reader.getRoot<schema::Recording>();
  return gathered_from(root.getProcesses(), root.getUnixNs());
} catch (const kj::Exception& e) {
  return fail("no recording: {}", e.getDescription().cStr());
}

}  // namespace

result<gathered> gathered_from(capnp::List<schema::TraceRecords>::Reader from, uint64_t unix_ns) {
  if (unix_ns > unix_max) return fail("trace: gathered after the year 2116");
  gathered all{.unix_ns = unix_ns};
  for (auto one : from) {
    auto p = process_from(one);
    if (!p) return p.why();
    all.processes.push_back(*std::move(p));
  }
  return all;
}

result<void> write_recording(const std::filesystem::path& path, const gathered& all) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::Recording>();
  root.setUnixNs(all.unix_ns);
  auto list = root.initProcesses(uint32_t(all.processes.size()));
  for (uint32_t i = 0; i < all.processes.size(); ++i) write_process(list[i], all.processes[i]);
  auto words = capnp::messageToFlatArray(message);
  auto bytes = words.asChars();
  if (bytes.size() + mark.size() > limits::recording_bytes_max)
    return fail("{}: a recording holds at most {} bytes", path.string(),
                limits::recording_bytes_max);
  auto file = whole_file::create(path, 0600);
  if (!file) return file.why();
  if (auto ok = file->write(as_bytes(mark)); !ok) return ok;
  if (auto ok = file->write(as_bytes({bytes.begin(), bytes.size()})); !ok) return ok;
  return file->finish();
}

result<gathered> read_recording(const std::filesystem::path& path) {
  auto file = mapped_file::open(path);
  if (!file) return file.why();
  auto bytes = file->bytes();
  if (bytes.size() > limits::recording_bytes_max)
    return fail("{}: {} bytes; a recording holds at most {}", path.string(), bytes.size(),
                limits::recording_bytes_max);
  if (bytes.size() < mark.size() || std::memcmp(bytes.data(), mark.data(), mark.size()) != 0)
    return fail("{}: no recording; `lethe trace save FILE` makes one", path.string());
  auto read = read_frame(bytes.subspan(mark.size()));
  if (!read) return fail("{}: {}", path.string(), read.why().text);
  return read;
}

}  // namespace lethe
