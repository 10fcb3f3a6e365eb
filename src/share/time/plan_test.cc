// SPDX-License-Identifier: Apache-2.0
#include "share/time/plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/messages.h"

namespace rondo::share {
namespace {

constexpr auto kStandard = TenantClass::kStandard;
constexpr auto kLatency = TenantClass::kLatency;
constexpr auto kBatch = TenantClass::kBatch;
constexpr auto kAsleep = Standing::kAsleep;
constexpr auto kVisits = Standing::kVisits;
constexpr auto kOver = Standing::kOver;
constexpr auto kFills = Standing::kFills;
constexpr auto kLog = Knowledge::kLog;
constexpr auto kSamples = Knowledge::kSamples;
constexpr auto kNothing = Knowledge::kNothing;

const Rules kRules;
constexpr double kBaseUs = 2'048;
constexpr double kTinyUs = 20;

Member Of(TenantClass cls, Standing standing, double weight = 1,
          int groups = 1) {
  return {.cls = cls,
          .weight = weight,
          .groups = groups,
          .standing = standing,
          .told = true,
          .steady = standing == Standing::kFills};
}
Member Unsuspended(Member m) {
  m.unsuspended = true;
  return m;
}
Member Asks(Member m, double visit_us) {
  m.visit_us = visit_us;
  return m;
}
Member Part(Member m, double part) {
  m.part = part;
  return m;
}
Member Untold(Member m) {
  m.told = false;
  return m;
}

Member Unsteady(Member m) {
  m.steady = false;
  return m;
}
Member Filled(Member m) {
  m.filled = true;
  return m;
}

// Ids from 1 on, in the order of the list.
Scene SceneOf(std::vector<Member> members, Knowledge knowledge = kLog) {
  Scene scene{.members = std::move(members),
              .knowledge = knowledge,
              .earned_us = kBaseUs,
              .holder_us = kTinyUs};
  for (TenantId id = 0; Member & m : scene.members) m.id = ++id;
  return scene;
}
Scene Visited(Scene scene, bool proven = false) {
  scene.visited = true;
  scene.proven = proven;
  return scene;
}
Scene Proven(Scene scene) { return Visited(std::move(scene), true); }

// --- ModeOf ------------------------------------------------------------------

struct ModeRow {
  const char* name;
  Scene scene;
  Mode mode;
};

const char* Name(Mode mode) {
  switch (mode) {
    case Mode::kAlone:
      return "alone";
    case Mode::kRotation:
      return "rotation";
    case Mode::kVisited:
      return "visited";
    case Mode::kServed:
      return "served";
  }
  return "?";
}

void ExpectModes(const std::vector<ModeRow>& rows) {
  for (const ModeRow& row : rows)
    EXPECT_STREQ(Name(ModeOf(row.scene)), Name(row.mode)) << row.name;
}

TEST(ModeOf, WithoutALatencyTenant) {
  const Member fills = Of(kStandard, kFills), visits = Of(kStandard, kVisits),
               over = Of(kStandard, kOver), asleep = Of(kStandard, kAsleep),
               batch = Of(kBatch, kFills), idle = Of(kBatch, kAsleep);
  ExpectModes({
      {"nobody", SceneOf({}), Mode::kAlone},
      {"all asleep", SceneOf({asleep, idle}), Mode::kAlone},
      {"one", SceneOf({fills}), Mode::kAlone},
      {"one beside sleepers", Proven(SceneOf({fills, asleep, idle})),
       Mode::kAlone},
      {"one that comes and goes", Proven(SceneOf({visits, idle})),
       Mode::kAlone},
      {"two that fill", SceneOf({fills, fills}), Mode::kRotation},
      {"two batch", SceneOf({batch, batch}), Mode::kRotation},
      {"batch and standard", SceneOf({batch, fills}), Mode::kRotation},
      {"a visitor, long ago", SceneOf({fills, visits}), Mode::kRotation},
      {"a visitor", Visited(SceneOf({fills, visits})), Mode::kVisited},
      {"a proven one", Proven(SceneOf({fills, visits})), Mode::kServed},
      {"... beside batch", Proven(SceneOf({batch, visits})), Mode::kServed},
      {"... beside two", Proven(SceneOf({fills, batch, visits})),
       Mode::kServed},
      {"... beside two, one not steady",
       Proven(SceneOf({Unsteady(fills), batch, visits})), Mode::kVisited},
      {"... beside one that is not steady",
       Proven(SceneOf({Unsteady(fills), visits})), Mode::kServed},
      {"visitors alone", Proven(SceneOf({visits, visits})), Mode::kVisited},
      {"one over", Proven(SceneOf({fills, visits, over})), Mode::kVisited},
      {"one over, and no visitor", SceneOf({fills, over}), Mode::kVisited},
      {"one taker that cannot be suspended",
       Proven(SceneOf({Unsuspended(fills), visits})), Mode::kServed},
      {"two, of which one cannot",
       Proven(SceneOf({fills, Unsuspended(batch), visits})), Mode::kVisited},
      {"... and nobody visits", SceneOf({fills, Unsuspended(batch)}),
       Mode::kRotation},
  });
}

TEST(ModeOf, WithALatencyTenant) {
  const Member fills = Of(kStandard, kFills), visits = Of(kStandard, kVisits),
               over = Of(kStandard, kOver), batch = Of(kBatch, kFills),
               idle = Of(kBatch, kAsleep), latency = Of(kLatency, kVisits),
               silent = Of(kLatency, kAsleep), spent = Of(kLatency, kOver),
               greedy = Of(kLatency, kFills);
  ExpectModes({
      {"alone", SceneOf({latency}), Mode::kAlone},
      {"alone and asleep", SceneOf({silent}), Mode::kAlone},
      {"beside batch", SceneOf({latency, batch}), Mode::kServed},
      {"beside two", SceneOf({latency, batch, batch}), Mode::kServed},
      {"asleep, and still expected", SceneOf({silent, fills}), Mode::kServed},
      {"beside one asleep", SceneOf({latency, idle}), Mode::kServed},
      {"beside another", SceneOf({latency, silent}), Mode::kServed},
      {"beside a visitor", SceneOf({latency, visits}), Mode::kServed},
      {"beside one over", SceneOf({latency, over, batch}), Mode::kServed},
      {"over", SceneOf({spent, batch}), Mode::kVisited},
      {"over, beside one that is not", SceneOf({spent, latency, batch}),
       Mode::kServed},
      {"always has work", SceneOf({greedy, fills}), Mode::kRotation},
      {"two, of which one cannot be suspended",
       SceneOf({latency, batch, Unsuspended(fills)}), Mode::kVisited},
      {"one that need not be", SceneOf({latency, Unsuspended(batch)}),
       Mode::kServed},
      {"a visitor that need not be",
       SceneOf({latency, batch, batch, Unsuspended(visits)}), Mode::kServed},
      {"a sleeper that need not be",
       SceneOf({latency, batch, batch, Unsuspended(idle)}), Mode::kServed},
  });
}

// Without the log all count as filling but for latency tenants.
TEST(ModeOf, WithoutTheLog) {
  const Member standard = Of(kStandard, kFills), batch = Of(kBatch, kFills),
               latency = Of(kLatency, kVisits), spent = Of(kLatency, kOver);
  for (const Knowledge knowledge : {kSamples, kNothing})
    ExpectModes({
        {"one", SceneOf({standard}, knowledge), Mode::kVisited},
        {"one latency", SceneOf({latency}, knowledge), Mode::kVisited},
        {"two", SceneOf({standard, batch}, knowledge), Mode::kVisited},
        {"latency", SceneOf({latency, batch}, knowledge), Mode::kServed},
        {"latency and standard", SceneOf({latency, standard}, knowledge),
         Mode::kServed},
        {"latency over", SceneOf({spent, batch}, knowledge), Mode::kVisited},
        {"one cannot be suspended",
         SceneOf({latency, batch, Unsuspended(batch)}, knowledge),
         Mode::kVisited},
        {"a standard one need not be",
         SceneOf({latency, batch, batch, Unsuspended(standard)}, knowledge),
         Mode::kServed},
    });
}

// --- TakesTurns --------------------------------------------------------------

TEST(TakesTurns, ThoseWhoAlwaysHaveWorkAsFarAsIsKnown) {
  struct Row {
    TenantClass cls;
    Standing standing;
    bool by_log, without;
  };
  for (const Row& row : std::initializer_list<Row>{
           {kBatch, kAsleep, false, false},
           {kBatch, kFills, true, true},
           {kStandard, kAsleep, false, false},
           {kStandard, kVisits, false, false},
           {kStandard, kOver, false, false},
           {kStandard, kFills, true, false},
           {kLatency, kAsleep, false, false},
           {kLatency, kVisits, false, false},
           {kLatency, kOver, false, false},
           {kLatency, kFills, true, false},
       }) {
    SCOPED_TRACE(testing::Message() << ClassName(row.cls) << " "
                                    << static_cast<int>(row.standing));
    const Member member = Of(row.cls, row.standing);
    EXPECT_EQ(TakesTurns(SceneOf({}, kLog), member), row.by_log);
    EXPECT_EQ(TakesTurns(SceneOf({}, kSamples), member), row.without);
    EXPECT_EQ(TakesTurns(SceneOf({}, kNothing), member), row.without);
  }
}

TEST(TakesTurns, OfSeveralThatFillOnlyThoseWhoAreSteady) {
  const Member steady = Of(kStandard, kFills), unsteady = Unsteady(steady),
               visits = Of(kStandard, kVisits),
               batch = Unsteady(Of(kBatch, kFills));
  struct Row {
    const char* name;
    Scene scene;  // whether the first one does
    bool takes;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"steady", SceneOf({steady, steady}), true},
           {"not steady", SceneOf({unsteady, steady}), false},
           {"nobody is", SceneOf({unsteady, unsteady}), false},
           {"not steady beside batch", SceneOf({unsteady, batch}), false},
           {"the only one", SceneOf({unsteady, visits}), true},
           {"batch need not be", SceneOf({batch, unsteady}), true},
       })
    EXPECT_EQ(TakesTurns(row.scene, row.scene.members[0]), row.takes)
        << row.name;
}

// --- PlanOf ------------------------------------------------------------------

struct SliceRow {
  const char* name;
  Scene scene;
  Mode mode;
  std::vector<double> group_slices_us;
};

void ExpectSlices(const std::vector<SliceRow>& rows) {
  for (const SliceRow& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_STREQ(Name(ModeOf(row.scene)), Name(row.mode));
    const std::vector<Placed> plan = PlanOf(row.scene, row.mode, kRules);
    ASSERT_EQ(plan.size(), row.group_slices_us.size());
    for (size_t i = 0; i < plan.size(); ++i) {
      EXPECT_EQ(plan[i].id, i + 1);
      EXPECT_NEAR(plan[i].group_slice_us, row.group_slices_us[i], 0.5)
          << "of the one at " << i;
    }
  }
}

Scene Earned(double us, Scene scene) {
  scene.earned_us = us;
  return scene;
}
Scene Holder(double us, Scene scene) {
  scene.holder_us = us;
  scene.holder = 1;
  return scene;
}
Scene Crowded(Scene scene) {
  scene.crowded = true;
  return scene;
}

TEST(PlanOf, ThoseWhoGoRound) {
  const auto fills = [](double weight, int groups = 1) {
    return Of(kStandard, kFills, weight, groups);
  };
  constexpr auto kRotation = Mode::kRotation;
  ExpectSlices({
      {"alone", Earned(20'000, SceneOf({fills(3)})), Mode::kAlone, {kBaseUs}},
      {"equal", SceneOf({fills(1), fills(1)}), kRotation, {2'048, 2'048}},
      {"earned",
       Earned(20'000, SceneOf({fills(1), fills(1)})),
       kRotation,
       {20'000, 20'000}},
      {"by weight",
       Earned(20'000, SceneOf({fills(3), fills(1)})),
       kRotation,
       {30'000, 10'000}},
      {"batch is as the others here",
       Earned(20'000, SceneOf({fills(3), Of(kBatch, kFills)})),
       kRotation,
       {30'000, 10'000}},
      {"small weights stretch all",
       SceneOf({fills(1), fills(9)}),
       kRotation,
       {1'000, 9'000}},
      {"but not for ever",
       SceneOf({fills(1), fills(999)}),
       kRotation,
       {1'000, 100'000}},
      {"split among groups",
       Earned(20'000, SceneOf({fills(1, 4), fills(1)})),
       kRotation,
       {5'000, 20'000}},
      {"many groups stretch as well",
       SceneOf({fills(1, 10), fills(1)}),
       kRotation,
       {1'000, 10'000}},
      {"very many groups",
       SceneOf({fills(1, 1'000), fills(1)}),
       kRotation,
       {1'000, 100'000}},
      {"beside one that leaves early",
       Earned(20'000, SceneOf({Part(fills(1), 0.5), fills(1)})),
       kRotation,
       {10'000, 20'000}},
      {"no shorter than where all begin",
       Earned(20'000, SceneOf({Part(fills(1), 0.01), fills(1)})),
       kRotation,
       {2'048, 20'000}},
      {"which they do here",
       SceneOf({Part(fills(1), 0.5), fills(1)}),
       kRotation,
       {2'048, 2'048}},
      {"over",
       SceneOf({fills(1), Of(kStandard, kOver)}),
       Mode::kVisited,
       {2'048, 2'048}},
      {"over, and not yet known for what it is",
       SceneOf({fills(1), Untold(Of(kStandard, kOver))}),
       Mode::kVisited,
       {2'048, 4'000}},
      {"which only the log could tell",
       SceneOf({Untold(fills(1)), Untold(Of(kLatency, kOver))}, kSamples),
       Mode::kVisited,
       {2'048, 2'048}},
  });
}

TEST(PlanOf, ThoseWhoVisit) {
  const Member fills = Of(kStandard, kFills), visits = Of(kStandard, kVisits),
               latency = Of(kLatency, kVisits), batch = Of(kBatch, kFills);
  constexpr auto kVisited = Mode::kVisited;
  constexpr auto kServed = Mode::kServed;
  ExpectSlices({
      {"standard",
       Visited(SceneOf({fills, visits})),
       kVisited,
       {kBaseUs, 8'000}},
      {"long requests",
       Visited(SceneOf({fills, Asks(visits, 6'000)})),
       kVisited,
       {kBaseUs, 9'000}},
      {"very long ones",
       Visited(SceneOf({fills, Asks(visits, 60'000)})),
       kVisited,
       {kBaseUs, 20'000}},
      {"asleep, and found when it wakes",
       Visited(SceneOf({fills, visits, Of(kStandard, kAsleep)})),
       kVisited,
       {kBaseUs, 8'000, 8'000}},
      {"by weight among all",
       Visited(SceneOf({fills, Of(kStandard, kVisits, 3)})),
       kVisited,
       {kBaseUs, 12'000}},
      {"not above the longest",
       Visited(SceneOf({fills, fills, fills, fills, fills, fills, fills,
                        Asks(Of(kStandard, kVisits, 1'000), 60'000)})),
       kVisited,
       {2'048, 2'048, 2'048, 2'048, 2'048, 2'048, 2'048, 100'000}},
      {"one that nobody waited for",
       Visited(SceneOf({fills, Filled(visits)})),
       kVisited,
       {kBaseUs, kBaseUs}},
      {"many at once",
       Visited(SceneOf({visits, visits, visits, visits, fills})),
       kVisited,
       {6'400, 6'400, 6'400, 6'400, 2'048}},
      {"very many", Visited(SceneOf(std::vector<Member>(20, visits))), kVisited,
       std::vector<double>(20, 4'000)},
      {"latency", SceneOf({batch, latency}), kServed, {20, 4'000}},
      {"its requests are not cut",
       SceneOf({batch, Asks(latency, 6'000)}),
       kServed,
       {20, 9'000}},
      {"for a while",
       SceneOf({batch, Asks(latency, 60'000)}),
       kServed,
       {20, 20'000}},
      {"two by weight",
       SceneOf({latency, Of(kLatency, kAsleep, 3), batch}),
       kServed,
       {2'000, 6'000, 20}},
      {"standard beside latency: it waits for the driver's own",
       SceneOf({latency, Asks(visits, 6'000), batch}),
       kServed,
       {4'000, kBaseUs, 20}},
      {"latency by samples",
       SceneOf({batch, latency}, kSamples),
       kServed,
       {20, 20'000}},
      {"blind", SceneOf({batch, latency}, kNothing), kServed, {1'000, 4'000}},
  });
}

TEST(PlanOf, ThoseWhoRunOneAtATime) {
  const Member latency = Of(kLatency, kVisits), idle = Of(kBatch, kAsleep);
  const auto batch = [](double weight = 1, int groups = 1) {
    return Of(kBatch, kFills, weight, groups);
  };
  const auto over = [](double weight = 1) {
    return Of(kStandard, kOver, weight);
  };
  constexpr auto kServed = Mode::kServed;
  ExpectSlices({
      {"as short as hand-overs allow",
       Holder(853, SceneOf({batch(), batch(), latency})),
       kServed,
       {853, 853, 4'000}},
      {"several groups",
       Holder(20, SceneOf({batch(1, 3), latency})),
       kServed,
       {1'000, 4'000}},
      {"batch asleep",
       Holder(20, SceneOf({batch(), idle, latency})),
       kServed,
       {20, 250, 4'000}},
      {"crowded",
       Crowded(Holder(20, SceneOf({batch(), latency}))),
       kServed,
       {kBaseUs, 4'000}},
      {"crowded, several groups",
       Crowded(Holder(20, SceneOf({batch(1, 2), latency}))),
       kServed,
       {kBaseUs / 2, 4'000}},
      {"beside one that is over",
       Holder(20, SceneOf({batch(), over(), latency})),
       kServed,
       {2'048, 2'048, 4'000}},
      {"... the holder for all who take turns",
       Holder(20, SceneOf({batch(), batch(), over(), latency})),
       kServed,
       {4'096, 4'096, 2'048, 4'000}},
      {"beside a standard one, by samples",
       Holder(20, SceneOf({batch(), Of(kStandard, kFills), latency}, kSamples)),
       kServed,
       {2'048, 2'048, 20'000}},
  });
}

// Of what goes round beside visitors the holder has the weights of all who take
// turns, and each of the others its own.
TEST(PlanOf, TheHolderBesideOthersKeepsToTheWeights) {
  struct Row {
    const char* name;
    std::vector<double> takers;
    int groups;  // of each of them
    double over;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"one", {1}, 1, 1},
           {"two", {1, 1}, 1, 1},
           {"a heavy one", {3}, 1, 1},
           {"a light one", {1}, 1, 3},
           {"a very light one", {1}, 1, 50},
           {"two beside a heavy one", {1, 1}, 1, 2},
           {"several groups", {1}, 4, 1},
       }) {
    SCOPED_TRACE(row.name);
    std::vector<Member> members;
    double weights = 0;
    for (const double weight : row.takers) {
      members.push_back(Of(kBatch, kFills, weight, row.groups));
      weights += weight;
    }
    members.push_back(Of(kStandard, kOver, row.over));
    members.push_back(Of(kLatency, kVisits));
    const std::vector<Placed> plan =
        PlanOf(Holder(20, SceneOf(members)), Mode::kServed, kRules);
    const double over_us = plan[row.takers.size()].group_slice_us;
    const double ratio = plan[0].group_slice_us * row.groups / over_us;
    EXPECT_NEAR(ratio / (weights / row.over), 1, 0.01);
    EXPECT_GE(plan[0].group_slice_us, kRules.least_slice_us);
  }
}

struct RunnableRow {
  const char* name;
  Scene scene;
  std::vector<bool> runnable;
};

TEST(PlanOf, WhoMayRun) {
  const Member latency = Of(kLatency, kVisits), batch = Of(kBatch, kFills),
               visits = Of(kStandard, kVisits), idle = Of(kBatch, kAsleep),
               over = Of(kStandard, kOver);
  Member throttled = batch;
  throttled.throttled = true;
  const auto held = [](std::optional<TenantId> holder, Scene scene) {
    scene.holder = holder;
    return scene;
  };
  for (const RunnableRow& row : std::initializer_list<RunnableRow>{
           {"the holder",
            held(2, SceneOf({batch, batch, latency})),
            {false, true, true}},
           {"nobody holds it",
            held({}, SceneOf({batch, batch, latency})),
            {false, false, true}},
           {"one needs no turn",
            held({}, SceneOf({batch, latency})),
            {true, true}},
           {"nor do those who take none",
            held(1, SceneOf({batch, batch, latency, visits, idle, over})),
            {true, false, true, true, true, true}},
           {"a limit counts before a turn",
            held(1, SceneOf({throttled, batch, latency})),
            {false, false, true}},
           {"a limit in a rotation",
            SceneOf({throttled, batch}),
            {false, true}},
           {"in a rotation all", SceneOf({batch, batch}), {true, true}},
       }) {
    SCOPED_TRACE(row.name);
    std::vector<bool> runnable;
    for (const Placed& placed : PlanOf(row.scene, ModeOf(row.scene), kRules))
      runnable.push_back(placed.runnable);
    EXPECT_EQ(runnable, row.runnable);
  }
}

// Two groups that run on slices below the cost of a switch make no progress at
// all. Whatever the scene, there is one at most.
TEST(PlanOf, NeverTwoTinyGroupsThatRun) {
  std::vector<Member> kinds;
  for (const TenantClass cls : {kStandard, kLatency, kBatch})
    for (const Standing standing : {kAsleep, kVisits, kOver, kFills})
      kinds.push_back(Of(cls, standing));
  int64_t scenes = 0, failures = 0;
  const auto check = [&](const Scene& scene, const char* name) {
    ++scenes;
    int tiny_groups = 0;
    const std::vector<Placed> plan = PlanOf(scene, ModeOf(scene), kRules);
    for (size_t i = 0; i < plan.size(); ++i)
      if (plan[i].runnable &&
          plan[i].group_slice_us < wire::kLeastSharedSliceUs)
        tiny_groups += scene.members[i].groups;
    if (tiny_groups > 1 && ++failures < 5)
      ADD_FAILURE() << name << ": " << tiny_groups << " tiny groups";
  };
  for (const Member& a : kinds)
    for (const Member& b : kinds)
      for (const Member& c : kinds)
        for (int bits = 0; bits < 64; ++bits)
          for (const Knowledge knowledge : {kLog, kSamples, kNothing})
            for (TenantId holder = 0; holder <= 3; ++holder) {
              Scene scene = SceneOf({a, b, c}, knowledge);
              if (holder > 0) scene.holder = holder;
              scene.crowded = bits & 1;
              scene.visited = scene.proven = bits & 2;
              scene.members[0].unsuspended = bits & 4;
              scene.members[1].weight = bits & 8 ? 1'000 : 1;
              scene.members[0].groups = bits & 16 ? 30 : 1;
              scene.members[2].weight = bits & 32 ? 0.001 : 1;
              check(scene, scene.crowded ? "crowded" : "not crowded");
            }
  EXPECT_EQ(failures, 0) << "of " << scenes;
}

}  // namespace
}  // namespace rondo::share
