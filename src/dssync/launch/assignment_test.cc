// The variables that launchers set, as seen in their documents and on real machines, and what can be wrong with them.
#include "dssync/launch/assignment.h"

#include <cstdlib>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

std::optional<Assignment> assignment_of(const Variables& variables) {
  return assignment_from([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

Variables with(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

std::string problem_of(const Variables& variables) {
  try {
    assignment_of(variables);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node7"},
                             {"MASTER_PORT", "31234"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_RUN_ID", "job7"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"}};

const Variables kSlurm = {{"SLURM_PROCID", "3"},
                          {"SLURM_NTASKS", "16"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NODELIST", "gpu[03-04,9],login1"},
                          {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"}};

TEST(PlaceTest, NothingWithoutALauncher) {
  EXPECT_FALSE(assignment_of({}));
  EXPECT_FALSE(assignment_of({{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "1"}, {"LOCAL_RANK", "3"}}));
  EXPECT_FALSE(assignment_of({{"RANK", ""}, {"WORLD_SIZE", ""}}));
}

TEST(PlaceTest, Torchrun) {
  const std::optional<Assignment> place = assignment_of(kTorchrun);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 5);
  EXPECT_EQ(place->size, 8);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->store_host, "node7");
  EXPECT_EQ(place->store_port, 31234);
  EXPECT_TRUE(place->store_is_hosted);
  EXPECT_EQ(place->run, (RunId{"job7", 2}));
  EXPECT_EQ(place->launcher, "torchrun");
}

TEST(PlaceTest, VariablesSetByHand) {
  const std::optional<Assignment> place =
      assignment_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.1.2.3"}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->store_host, "10.1.2.3");
  EXPECT_EQ(place->store_port, 29500);
  EXPECT_FALSE(place->store_is_hosted);
  EXPECT_EQ(place->run, RunId{});
}

TEST(PlaceTest, TorchrunsDefaultIsNoNameOfARun) {
  EXPECT_EQ(assignment_of(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}}))->run, (RunId{"", 2}));
}

TEST(PlaceTest, OpenMpiOnOneMachine) {
  const std::optional<Assignment> place = assignment_of({{"OMPI_COMM_WORLD_RANK", "2"},
                                                         {"OMPI_COMM_WORLD_SIZE", "4"},
                                                         {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 2);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->local_rank, 2);
  EXPECT_EQ(place->store_host, "127.0.0.1");
  EXPECT_EQ(place->launcher, "mpirun");
}

TEST(PlaceTest, OpenMpiOnSeveralMachinesNeedsAnAddress) {
  const Variables variables = {
      {"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_THAT(problem_of(variables),
              AllOf(HasSubstr("MASTER_ADDR is not set"), HasSubstr("4 workers"), HasSubstr("rank 0")));
  const std::optional<Assignment> place = assignment_of(with(variables, {{"MASTER_ADDR", "node1"}}));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->store_host, "node1");
}

TEST(PlaceTest, Mpich) {
  const std::optional<Assignment> place =
      assignment_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->size, 2);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->store_host, "127.0.0.1");
}

TEST(PlaceTest, SlurmStep) {
  const std::optional<Assignment> place = assignment_of(kSlurm);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->size, 16);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->store_host, "gpu03");
  EXPECT_EQ(place->store_port, 29500);
  EXPECT_EQ(place->launcher, "Slurm");
}

TEST(PlaceTest, SlurmStepCountsItsOwnTasks) {
  EXPECT_EQ(assignment_of(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "8"}}))->size, 8);
}

TEST(PlaceTest, SlurmWithoutTasksIsNoLauncher) {
  Variables batch = kSlurm;
  batch.erase("SLURM_STEP_ID");
  EXPECT_FALSE(assignment_of(batch));
  EXPECT_FALSE(assignment_of(with(kSlurm, {{"SLURM_STEP_ID", "4294967290"}})));  // an interactive shell
  EXPECT_FALSE(assignment_of(with(kSlurm, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "1"}})));
}

TEST(PlaceTest, SlurmFindsTheFirstHost) {
  const auto host = [](const std::string& list) {
    return assignment_of(with(kSlurm, {{"SLURM_STEP_NODELIST", list}}))->store_host;
  };
  EXPECT_EQ(host("a1,b2"), "a1");
  EXPECT_EQ(host("node7"), "node7");
  EXPECT_EQ(host("rack[1-2]n[08,10]"), "rack1n08");
  EXPECT_EQ(host("gpu[5]"), "gpu5");
  EXPECT_EQ(host("gpu[3-4]x,b"), "gpu3x");
  Variables others = kSlurm;
  others.erase("SLURM_STEP_NODELIST");
  EXPECT_EQ(assignment_of(others)->store_host, "10.0.0.1");
  EXPECT_EQ(assignment_of(with(others, {{"SLURM_JOB_NODELIST", "c[2-3]"}}))->store_host, "c2");
  EXPECT_EQ(assignment_of(with(kSlurm, {{"MASTER_ADDR", "elsewhere"}}))->store_host, "elsewhere");
}

TEST(PlaceTest, BrokenHostLists) {
  for (const char* list : {"gpu[1-", "gpu[", "gpu[]", "gpu[,2]"}) {
    EXPECT_THAT(problem_of(with(kSlurm, {{"SLURM_STEP_NODELIST", list}})),
                AllOf(HasSubstr("SLURM_STEP_NODELIST"), HasSubstr(list), HasSubstr("node[01-04]")));
  }
}

TEST(PlaceTest, AnInnerLauncherKnowsBetter) {
  EXPECT_EQ(assignment_of(with(kSlurm, kTorchrun))->launcher, "torchrun");
  const Variables mpi = {
      {"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(assignment_of(with(kSlurm, mpi))->size, 4);
}

TEST(PlaceTest, SlurmsOwnPmiIsSlurm) {
  const std::optional<Assignment> place = assignment_of(with(kSlurm, {{"PMI_RANK", "3"}, {"PMI_SIZE", "16"}}));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->launcher, "Slurm");
  EXPECT_EQ(place->store_host, "gpu03");
}

TEST(PlaceTest, MissingHalves) {
  EXPECT_THAT(problem_of({{"RANK", "1"}}), AllOf(HasSubstr("RANK is set"), HasSubstr("WORLD_SIZE is not")));
  EXPECT_THAT(problem_of({{"WORLD_SIZE", "4"}}), AllOf(HasSubstr("WORLD_SIZE is set"), HasSubstr("RANK is not")));
  EXPECT_THAT(problem_of({{"RANK", "1"}, {"WORLD_SIZE", "4"}}), HasSubstr("MASTER_ADDR is not set"));
  EXPECT_THAT(problem_of({{"PMI_RANK", "1"}}), HasSubstr("PMI_SIZE is not"));
  Variables slurm = kSlurm;
  slurm.erase("SLURM_NTASKS");
  EXPECT_THAT(problem_of(slurm), HasSubstr("SLURM_NTASKS is not"));
}

TEST(PlaceTest, NonsenseNamesTheVariableAndItsValue) {
  EXPECT_THAT(problem_of(with(kTorchrun, {{"RANK", "8"}})),
              AllOf(HasSubstr("RANK is \"8\""), HasSubstr("from 0 to 7")));
  EXPECT_THAT(problem_of(with(kTorchrun, {{"RANK", "-1"}})), HasSubstr("RANK is \"-1\""));
  EXPECT_THAT(problem_of(with(kTorchrun, {{"RANK", "2x"}})), HasSubstr("RANK is \"2x\""));
  EXPECT_THAT(problem_of(with(kTorchrun, {{"WORLD_SIZE", "0"}})), HasSubstr("WORLD_SIZE is \"0\""));
  EXPECT_THAT(problem_of(with(kTorchrun, {{"WORLD_SIZE", "99999999999999999999"}})), HasSubstr("WORLD_SIZE"));
  EXPECT_THAT(problem_of(with(kTorchrun, {{"LOCAL_RANK", "x"}})), HasSubstr("LOCAL_RANK is \"x\""));
  EXPECT_THAT(problem_of(with(kTorchrun, {{"MASTER_PORT", "0"}})), AllOf(HasSubstr("MASTER_PORT"), HasSubstr("65535")));
  EXPECT_THAT(problem_of(with(kTorchrun, {{"MASTER_PORT", "65536"}})), HasSubstr("MASTER_PORT is \"65536\""));
  EXPECT_THAT(problem_of(with(kSlurm, {{"SLURM_STEP_ID", "first"}})), HasSubstr("SLURM_STEP_ID is \"first\""));
}

TEST(PlaceTest, ReadsTheProcessEnvironment) {
  ASSERT_EQ(setenv("DSSYNC_PLACE_TEST", "here", 1), 0);
  const Environment environment = process_environment();
  EXPECT_EQ(environment("DSSYNC_PLACE_TEST"), "here");
  ASSERT_EQ(unsetenv("DSSYNC_PLACE_TEST"), 0);
  EXPECT_FALSE(environment("DSSYNC_PLACE_TEST"));
}

}  // namespace
}  // namespace dssync
