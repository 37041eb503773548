#pragma once

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include "parallel/link_door.hpp"

// A transport of Gloo's over our links. Gloo's own algorithms run on it, too, but they leave what
// they added up in memory that nobody wipes; only tests call them.
//
// Frames of one lane are received in the order in which they were sent; slots must agree.

namespace lethe {

class link_device;

class gloo_address final : public gloo::transport::Address {
 public:
  explicit gloo_address(const link_address& at) : at_(at) {}
  std::string str() const override { return at_.text(); }
  std::vector<char> bytes() const override { return {at_.raw.begin(), at_.raw.end()}; }

 private:
  const link_address at_;
};

/// Memory that is sent from or received into. Anything posted on one, and then waited for, is done
/// in the thread that waits.
class link_buffer final : public gloo::transport::UnboundBuffer {
 public:
  link_buffer(mesh& over, lane on, void* at, size_t bytes)
      : UnboundBuffer(at, bytes), mesh_(over), lane_(on) {}

  void send(int rank, uint64_t slot, size_t offset, size_t bytes) override;
  void recv(int rank, uint64_t slot, size_t offset, size_t bytes) override;
  void recv(std::vector<int> ranks, uint64_t slot, size_t offset, size_t bytes) override;
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;
  void abortWaitRecv() override { mesh_.abort(); }
  void abortWaitSend() override { mesh_.abort(); }

 private:
  size_t length(size_t offset, size_t bytes) const;
  deadline until(std::chrono::milliseconds timeout) const;

  mesh& mesh_;
  const lane lane_;
  int to_ = -1, from_ = -1;
};

class link_pair final : public gloo::transport::Pair {
 public:
  link_pair(link_device& device, lane on, uint32_t rank);
  const gloo::transport::Address& address() const override { return address_; }
  void connect(const std::vector<char>& bytes) override;
  void close() override {}  // the mesh closes all
  void setSync(bool, bool) override {}
  std::unique_ptr<gloo::transport::Buffer> createSendBuffer(int, void*, size_t) override;
  std::unique_ptr<gloo::transport::Buffer> createRecvBuffer(int, void*, size_t) override;
  void send(gloo::transport::UnboundBuffer* from, uint64_t slot, size_t offset,
            size_t bytes) override;
  void recv(gloo::transport::UnboundBuffer* to, uint64_t slot, size_t offset,
            size_t bytes) override;

 private:
  link_device& device_;
  const lane lane_;
  const uint32_t rank_;
  const gloo_address address_;
};

/// One lane of a group.
class link_context final : public gloo::transport::Context {
 public:
  link_context(link_device& device, lane on, int rank, int size)
      : Context(rank, size), device_(device), lane_(on) {}
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override;
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* at,
                                                                      size_t bytes) override;

 private:
  link_device& device_;
  const lane lane_;
};

/// A rank's end of a group. Contexts are made lane after lane.
class link_device final : public gloo::transport::Device {
 public:
  link_device(mesh& over, link_door& door, deadline formed)
      : mesh_(over), door_(door), formed_(formed) {}
  std::string str() const override { return door_.address().text(); }
  const std::string& getPCIBusID() const override { return none_; }
  std::shared_ptr<gloo::transport::Context> createContext(int rank, int size) override;

  mesh& over() { return mesh_; }
  link_door& door() { return door_; }
  deadline formed() const { return formed_; }

 private:
  mesh& mesh_;
  link_door& door_;
  const deadline formed_;
  const std::string none_;
  uint8_t lanes_made_ = 0;
};

}  // namespace lethe
