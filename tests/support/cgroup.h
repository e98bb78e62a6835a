// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace sidetrack::netns {

// A cgroup (v2) of the test's own, removed with it; below another, or the one that the test is in.
class TestCgroup {
 public:
  explicit TestCgroup(const std::string& name, const TestCgroup* parent = nullptr);
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;
  ~TestCgroup();

  [[nodiscard]] const std::string& path() const { return path_; }  // within the hierarchy, as /proc/PID/cgroup has it
  [[nodiscard]] const std::string& folder() const { return folder_; }  // where it is mounted

  // Removed, and made anew under the same path: another cgroup.
  void make_anew() const;

 private:
  std::string path_;
  std::string folder_;
};

// This process is in it for as long as this lives, and so are the sockets that it opens.
class InCgroup {
 public:
  explicit InCgroup(const TestCgroup& cgroup);
  InCgroup(const InCgroup&) = delete;
  InCgroup& operator=(const InCgroup&) = delete;
  ~InCgroup();

 private:
  std::string before_;
};

}  // namespace sidetrack::netns
