#include "parallel/nccl_library.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <type_traits>

#if __has_include(<nccl.h>)
#include <nccl.h>
#define LETHE_HAS_NCCL_HEADER 1
#endif

// What we say of NCCL's interface, against its header and the library where these are installed.

namespace lethe::testing {
namespace {

#ifdef LETHE_HAS_NCCL_HEADER

#define SAME(ours, theirs) static_assert(long(ours) == long(theirs), #ours " is not " #theirs)
SAME(nccl_status::success, ncclSuccess);
SAME(nccl_status::unhandled_cuda_error, ncclUnhandledCudaError);
SAME(nccl_status::system_error, ncclSystemError);
SAME(nccl_status::internal_error, ncclInternalError);
SAME(nccl_status::invalid_argument, ncclInvalidArgument);
SAME(nccl_status::invalid_usage, ncclInvalidUsage);
SAME(nccl_status::remote_error, ncclRemoteError);
SAME(nccl_status::in_progress, ncclInProgress);
SAME(nccl_type::float32, ncclFloat32);
SAME(nccl_type::bfloat16, ncclBfloat16);
SAME(nccl_reduction::sum, ncclSum);
SAME(nccl_window_symmetric, NCCL_WIN_COLL_SYMMETRIC);
SAME(nccl_window_alignment, NCCL_WIN_REQUIRED_ALIGNMENT);
SAME(nccl_setup::unset, NCCL_CONFIG_UNDEF_INT);
SAME(sizeof(nccl_id), sizeof(ncclUniqueId));
SAME(alignof(nccl_id), alignof(ncclUniqueId));
SAME(sizeof(nccl_status), sizeof(ncclResult_t));
SAME(sizeof(nccl_type), sizeof(ncclDataType_t));
SAME(sizeof(nccl_reduction), sizeof(ncclRedOp_t));
#undef SAME

// A later header may have more fields behind ours, which the version tells it not to read.
#define FIELD(ours, theirs)                                                    \
  static_assert(offsetof(nccl_setup, ours) == offsetof(ncclConfig_t, theirs)); \
  static_assert(std::is_same_v<decltype(nccl_setup::ours), decltype(ncclConfig_t::theirs)>)
FIELD(size, size);
FIELD(magic, magic);
FIELD(version, version);
FIELD(blocking, blocking);
FIELD(cga_cluster_size, cgaClusterSize);
FIELD(channels_min, minCTAs);
FIELD(channels_max, maxCTAs);
FIELD(net_name, netName);
FIELD(split_share, splitShare);
FIELD(traffic_class, trafficClass);
FIELD(comm_name, commName);
FIELD(collnet, collnetEnable);
FIELD(channel_policy, CTAPolicy);
FIELD(shrink_share, shrinkShare);
FIELD(nvls_channels, nvlsCTAs);
FIELD(channels_per_net_peer, nChannelsPerNetPeer);
FIELD(nvlink_centric, nvlinkCentricSched);
#undef FIELD
static_assert(sizeof(nccl_setup) <= sizeof(ncclConfig_t));

/// Each function of the table takes as many arguments as NCCL's, of the same kind and size.
template <class Ours, class Theirs>
constexpr bool same_argument =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> ==
                                          std::is_pointer_v<Theirs>&& std::is_class_v<Ours> ==
                                          std::is_class_v<Theirs>;
template <class Ours, class Theirs>
struct same_call : std::false_type {};
template <class... Ours, class... Theirs>
requires(sizeof...(Ours) ==
         sizeof...(Theirs)) struct same_call<nccl_status (*)(Ours...), ncclResult_t(Theirs...)>
    : std::bool_constant<(same_argument<Ours, Theirs> && ...)> {
};

#define CALL(ours, theirs) \
  static_assert(same_call<decltype(nccl_functions::ours), decltype(theirs)>::value)
CALL(get_version, ncclGetVersion);
CALL(get_unique_id, ncclGetUniqueId);
CALL(init, ncclCommInitRankConfig);
CALL(split, ncclCommSplit);
CALL(async_error, ncclCommGetAsyncError);
CALL(finalize, ncclCommFinalize);
CALL(destroy, ncclCommDestroy);
CALL(abort, ncclCommAbort);
CALL(mem_alloc, ncclMemAlloc);
CALL(mem_free, ncclMemFree);
CALL(window_register, ncclCommWindowRegister);
CALL(window_deregister, ncclCommWindowDeregister);
CALL(group_start, ncclGroupStart);
CALL(group_end, ncclGroupEnd);
CALL(all_reduce, ncclAllReduce);
CALL(all_gather, ncclAllGather);
CALL(reduce_scatter, ncclReduceScatter);
CALL(broadcast, ncclBroadcast);
CALL(send, ncclSend);
CALL(recv, ncclRecv);
#undef CALL

TEST(NcclHeader, StartsASetupAsOursDoes) {
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  nccl_setup ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.nvlink_centric, theirs.nvlinkCentricSched);
  EXPECT_LE(ours.version, theirs.version);
}

#endif

#define LOAD_OR_SKIP(into)                                                          \
  auto into = load_nccl(*LETHE_NCCL_LIBRARY ? LETHE_NCCL_LIBRARY : "libnccl.so.2"); \
  if (!into && into.why().text.find("cannot load") != std::string::npos)            \
  GTEST_SKIP() << "NCCL is not installed"

/// A device is not asked for before a group is.
TEST(NcclLibrary, IsLoadedWithoutAGpu) {
  LOAD_OR_SKIP(nccl);
  ASSERT_TRUE(nccl) << nccl.why().text;
  int version = 0;
  EXPECT_EQ(nccl->get_version(&version), nccl_status::success);
  EXPECT_GE(version, 22800);
}

TEST(NcclLibrary, GivesEachGroupAnIdOfItsOwn) {
  LOAD_OR_SKIP(nccl);
  ASSERT_TRUE(nccl);
  // NCCL listens for ranks at each id's address.
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  std::set<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    nccl_id id{};
    ASSERT_EQ(nccl->get_unique_id(&id), nccl_status::success);
    ids.insert(std::string(id.bytes, sizeof id));
  }
  EXPECT_EQ(ids.size(), 3u);
}

TEST(NcclLibrary, SaysWhatIsMissing) {
  auto nowhere = load_nccl("libnccl-of-nobody.so.2");
  ASSERT_FALSE(nowhere);
  EXPECT_TRUE(nowhere.why().text.starts_with("nccl: cannot load libnccl-of-nobody.so.2: "));
  EXPECT_TRUE(
      nowhere.why().text.ends_with("; install NCCL 2.28 or later where the loader finds it"));
  auto other = load_nccl("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.why().text, "nccl: libm.so.6 has no ncclGetVersion; install NCCL 2.28 or later");
}

TEST(NcclLibrary, IsOfAVersionThatIsKnown) {
  for (int known : {22800, 22809, 22907, 23000, 29999}) EXPECT_TRUE(check_nccl_version(known));
  for (int other : {0, 2708, 22707, 22799, 30000, 30100}) EXPECT_FALSE(check_nccl_version(other));
  EXPECT_EQ(check_nccl_version(22707).why().text,
            "nccl: version 2.27.7 is not one that Lethe knows; install 2.28 or a later 2.x");
}

/// What comes from another rank is a number that nobody checked.
TEST(NcclLibrary, HasWordsForAnyNumber) {
  std::set<std::string_view> names;
  for (int call = 0; call < 18; ++call) names.insert(name_of(nccl_call(call)));
  EXPECT_EQ(names.size(), 18u);
  EXPECT_EQ(name_of(nccl_call::abort), "ncclCommAbort");
  EXPECT_EQ(name_of(nccl_call(200)), "a call");
  EXPECT_EQ(nccl_words(6), "another rank or the network is gone; see the other ranks");
  EXPECT_EQ(nccl_words(~0U), nccl_words(uint32_t(nccl_status::internal_error)));
}

}  // namespace
}  // namespace lethe::testing
