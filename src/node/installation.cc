// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/installation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sidetrack/version.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string_view>

#include "model/error.h"
#include "model/printable.h"
#include "node/cni_error.h"
#include "node/conflist.h"
#include "node/json_text.h"
#include "node/network_configuration.h"
#include "node/plugin.h"
#include "options/options.h"
#include "system/descriptor.h"
#include "system/file.h"
#include "system/folder.h"
#include "system/read_write.h"
#include "system/replace_file.h"

namespace sidetrack::cni {
namespace {

constexpr const char* about_programs = "--bin-dir names the directory in which the runtime looks for plugins";
constexpr const char* about_configurations =
    "--net-dir names the directory from which the runtime reads its configuration";
constexpr unsigned program_mode = 0755;
constexpr unsigned configuration_mode = 0600;

// "@(#)sidetrack 0.2.0", by which what(1), and version_in(), find the version of a program. Once in the file.
constexpr std::size_t version_mark_size = 14;
constexpr auto marked_version = [] {
  std::array<char, version_mark_size + version.size() + 1> text{'@', '(', '#', ')', 's', 'i', 'd',
                                                                'e', 't', 'r', 'a', 'c', 'k', ' '};
  std::ranges::copy(version, text.begin() + version_mark_size);
  return text;
}();

std::string program_path(const Folders& folders) { return fmt::format("{}/{}", folders.programs, plugin_name); }

// ---- Reading

// The content of a program; nothing, with errno set, if it cannot be read.
std::optional<std::string> read_program(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode)) {
    errno = S_ISDIR(status.st_mode) ? EISDIR : ENOEXEC;
    return std::nullopt;
  }
  std::string content;
  errno = sidetrack::read_all(file.get(), SIZE_MAX, content);
  if (errno != 0) return std::nullopt;
  return content;
}

bool is_file_of_mode(const std::optional<FileVersion>& version, unsigned mode) {
  return version && version->mode == (S_IFREG | mode);
}

std::string version_in(std::string_view content) {
  const std::size_t begin = content.find(std::string_view(marked_version.data(), version_mark_size));
  if (begin == std::string_view::npos) return "";
  constexpr std::size_t longest = 32;
  const std::string_view rest = content.substr(begin + version_mark_size, longest);
  return printable(rest.substr(0, rest.find('\0')));
}

bool exists(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw system_error(errno, fmt::format("cannot look at '{}'", excerpt(path)));
}

// The text of a configuration; nothing, with the reason in `problem`, for what is no file that a runtime could read. A
// fault is an Error: what may hold our entry does not count as without it.
std::optional<std::string> read_text(const std::string& path, std::string* problem = nullptr) {
  host::FileText file = host::read_file(-1, path);
  if (file.text) return std::move(file.text);
  for (const int error : {ENOENT, ENOTDIR, ELOOP, EISDIR, EINVAL, EFBIG}) {
    if (file.error != error) continue;
    if (problem != nullptr) *problem = file.problem;
    return std::nullopt;
  }
  throw system_error(file.error, fmt::format("cannot read '{}'", excerpt(path)));
}

// A configuration of the folder.
struct Found {
  std::string name;
  std::string path;  // of a list with symbolic links followed: of the file that is to be replaced
  Form form = Form::list;
  Conflist list{};
  std::optional<FileVersion> version{};  // that was read
};

struct Search {
  std::vector<Found> valid;         // by name, but for the next
  std::vector<std::string> made;    // paths of the lists that install() made beside a single plugin
  std::vector<std::string> before;  // the first valid one: those that no runtime would load, a sentence each
  std::vector<std::string> after;   // it
  std::string may_name_ours;        // one of those two
};

// As libcni's ConfFiles and the runtimes do.
std::vector<std::string> configuration_names(const std::string& folder) {
  const auto entries = entries_of(folder);
  if (!entries) {
    throw system_error(errno, fmt::format("cannot read the directory '{}'", excerpt(folder)), ExitCode::usage,
                       about_configurations);
  }
  std::vector<std::string> names;
  for (const auto& [name, is_folder] : *entries) {
    const bool configuration = name.ends_with(".conf") || name.ends_with(".conflist") || name.ends_with(".json");
    if (configuration && !is_folder) names.push_back(name);
  }
  return names;
}

// No configuration that a runtime would load.
struct NotValid : Error {
  using Error::Error;
  explicit NotValid(const Error& error) : Error(error) {}
};

std::string resolved(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  return real ? real.get() : path;
}

Found read_configuration(const std::string& folder, const std::string& name) {
  Found found{name, folder + "/" + name, name.ends_with(".conflist") ? Form::list : Form::single};
  if (found.form == Form::list) found.path = resolved(found.path);
  found.version = file_version(found.path);
  std::string problem;
  auto text = read_text(found.path, &problem);
  if (!text) throw NotValid(ExitCode::failed, fmt::format("'{}': cannot be read: {}", excerpt(found.path), problem));
  try {
    found.list = read_conflist(found.path, *std::move(text), found.form);
  } catch (const Error& error) {
    throw NotValid(error);
  }
  return found;
}

bool may_name_ours(const std::string& path) {
  const auto text = read_text(path);
  return !text || text->find(plugin_name) != std::string::npos;
}

// A single plugin stays as its owner wrote it: what tests for the file finds it, and its owner can take it away. Sorted
// before it is the list that is made of it: '-' comes before '.'.
constexpr const char* made_ending = "-sidetrack.conflist";

Search search(const std::string& folder) {
  Search all;
  for (const std::string& name : configuration_names(folder)) {
    if (name.ends_with(made_ending) && may_name_ours(folder + "/" + name)) {
      all.made.push_back(folder + "/" + name);
      continue;
    }
    try {
      all.valid.push_back(read_configuration(folder, name));
    } catch (const NotValid& error) {
      (all.valid.empty() ? all.before : all.after).emplace_back(error.what());
      if (may_name_ours(folder + "/" + name)) all.may_name_ours = error.what();
    }
  }
  return all;
}

std::string without_ending(const std::string& path) { return path.substr(0, path.rfind('.')); }

// Multus takes the first file by name that does not begin with that of its own, 00-multus.conf, for the network that it
// hands pods on to: a list with another name it would hand on to itself. So its file becomes the list.
bool is_moved(const Found& found) {
  return found.form == Form::single && found.list.plugins.front().starts_with("multus");
}

std::string list_path(const Found& found) {
  return found.form == Form::list ? found.path
                                  : without_ending(found.path) + (is_moved(found) ? ".conflist" : made_ending);
}

// The first one. But a list that we moved a single plugin to hides what the primary plugin writes to its .json later.
const Found& used(const Search& all, const std::string& folder) {
  for (const Found& found : all.valid) {
    const Found& first = all.valid.front();
    if (found.form == Form::single && first.list.has_entry() && list_path(found) == list_path(first)) return found;
  }
  if (!all.valid.empty()) return all.valid.front();
  throw Error(
      ExitCode::failed,
      fmt::format("'{}' holds no network configuration{}{}", excerpt(folder),
                  all.before.empty() ? "" : " that can be used: ", all.before.empty() ? "" : all.before.front()),
      "install the primary network plugin first; --watch waits for it");
}

// Plugins of other meshes, which intercept pods themselves.
constexpr std::string_view other_meshes[] = {"consul-cni", "istio-cni", "kuma-cni", "linkerd-cni", "merbridge-cni"};

// The runtime looks for all plugins of a chain in the same folders, of which most runtimes have one.
std::string wrong_folder(const Folders& folders, const Found& found) {
  std::string others;
  for (const std::string& type : found.list.plugins) {
    if (type == plugin_name) continue;
    if (exists(folders.programs + "/" + type)) return "";
    others += (others.empty() ? "" : ", ") + excerpt(type);
  }
  if (others.empty() || !exists(folders.programs)) return "";
  std::string elsewhere;
  for (const Platform& platform : platforms) {
    const std::string path = fmt::format("{}/{}", platform.programs, found.list.plugins.front());
    if (access(path.c_str(), F_OK) == 0) elsewhere = fmt::format(": they are in '{}'", platform.programs);
  }
  return fmt::format(
      "'{}' holds no other plugin of '{}' ({}): the runtime looks for them elsewhere, give that directory "
      "with --bin-dir{}",
      excerpt(folders.programs), excerpt(found.path), others, elsewhere);
}

// Whether the folder is mounted there, as into a container, whose other paths are not the node's. Linux 5.8.
bool is_mounted(const std::string& folder) {
  struct statx status {};
  return statx(AT_FDCWD, folder.c_str(), 0, STATX_TYPE, &status) == 0 &&
         (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Returns an errno, 0 if the file can be written, or made.
int error_of_writing(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return EISDIR;
  if (access(path.c_str(), W_OK) == 0) return 0;
  return errno == ENOENT && access(folder_above(path).c_str(), W_OK) == 0 ? 0 : errno;
}

// Returns why the plugin would refuse its entry, as libcni passes it on, for every pod; empty if it would not.
std::string refused_entry(const Found& found) {
  const Conflist& list = found.list;
  Ordered passed = list.entry_at_end();
  if (passed.is_null()) return "";
  const auto served = std::ranges::find_if(list.cni_versions, is_served);
  passed["name"] = list.network;
  passed["cniVersion"] = served != list.cni_versions.end() ? *served
                         : list.cni_versions.empty()       ? ""
                                                           : list.cni_versions.front();
  const auto refused = [&](std::string_view why) {
    return fmt::format("'{}': the plugin refuses its entry for every pod: {}", excerpt(found.path), why);
  };
  try {
    const NetworkConfiguration read = read_configuration(passed.dump(), Keys::all);
    if (is_mounted(folder_above(found.path))) return "";
    for (const std::string& log : read.log.targets) {
      if (const int error = error_of_writing(log); error != 0)
        return refused(fmt::format("logFile: cannot write to '{}': {}", excerpt(log), errno_words(error)));
    }
  } catch (const CniError& error) {
    return refused(error.what());
  }
  return "";
}

// Why the runtime may use another chain than the one with our entry at its end, or the chain may not work.
std::vector<std::string> problems_of(const Search& all, const Folders& folders, const Found& found) {
  const std::string& folder = folders.configurations;
  std::vector<std::string> problems;
  for (std::string problem : {wrong_folder(folders, found), refused_entry(found)}) {
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  for (const std::string& type : found.list.plugins) {
    if (std::ranges::find(other_meshes, type) != std::end(other_meshes))
      problems.push_back(fmt::format("'{}': {} is in the chain, too: both intercept pods; uninstall one of them",
                                     excerpt(found.path), type));
  }
  for (const std::string& each : all.before) {
    problems.push_back(each + "; the runtime may still load it, or, like containerd, none of the files after it");
  }
  for (const std::string& each : plugins_beside(folder, found.list))
    problems.push_back(fmt::format("'{}' comes after {}: say \"loadOnlyInlinedPlugins\": true in '{}', or remove it",
                                   excerpt(each), plugin_name, excerpt(found.path)));
  return problems;
}

// What install() keeps of a file that it changes, or moves: no name of a configuration, but beside the list.
constexpr const char* saved_ending = ".sidetrack-saved";

// ---- Steps

// Of this process and its like: on the folder itself, which needs no file.
Descriptor lock(const std::string& folder) {
  Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) {
    throw system_error(errno, fmt::format("cannot open the directory '{}'", excerpt(folder)), ExitCode::usage,
                       about_configurations);
  }
  while (flock(opened.get(), LOCK_EX) != 0) {
    if (errno != EINTR) throw system_error(errno, fmt::format("cannot lock the directory '{}'", excerpt(folder)));
  }
  return opened;
}

bool remove_file(const std::string& path) {
  if (!exists(path)) return false;  // a file system that is read-only would say that first
  if (unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw system_error(errno, fmt::format("cannot remove '{}'", excerpt(path)));
}

void rename_file(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0)
    throw system_error(errno, fmt::format("cannot rename '{}' to '{}'", excerpt(from), excerpt(to)));
  flush_folder_of(to);
}

// `instead_of`: the version of the file that was read; without one, whatever is there.
void write_configuration(const std::string& path, const std::string& text,
                         const std::optional<FileVersion>& instead_of = {}) {
  replace_file(path, text,
               {.mode = configuration_mode, .hint = about_configurations, .links = true, .instead_of = instead_of});
}

void put_program(const Folders& folders, const std::string& program, Outcome& outcome) {
  const std::string path = program_path(folders);
  if (is_file_of_mode(file_version(path), program_mode) && read_program(path) == program) return;
  if (!exists(folders.programs)) {
    throw Error(ExitCode::usage, fmt::format("there is no directory '{}'", excerpt(folders.programs)), about_programs);
  }
  replace_file(path, program, {.mode = program_mode, .hint = about_programs, .links = true});
  outcome.done.push_back(fmt::format("installed '{}', version {}", excerpt(path), version));
}

// The list in a file, or that is made of the single plugin in it; nothing if there is none.
std::optional<Conflist> list_in(const std::string& path, Form form) {
  const auto text = read_text(path);
  try {
    return text ? std::optional(read_conflist(path, *text, form)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A list of that name that holds our entry is one that we made and were killed over.
void check_free(const std::string& path) {
  if (!exists(path)) return;
  const auto list = list_in(path, Form::list);
  if (list && list->has_entry()) return;
  throw Error(ExitCode::failed,
              fmt::format("'{}' blocks the list that would replace the single plugin beside it", excerpt(path)),
              "remove one of the two");
}

void put_entry(const Found& found, const Ordered& list, Outcome& outcome) {
  const std::string path = list_path(found);
  const std::string text = file_text(list);
  const bool is_there = found.form == Form::list ? found.list.document == list
                                                 : !is_moved(found) && exists(path) && read_text(path) == text;
  if (is_there && is_file_of_mode(file_version(path), configuration_mode)) return;
  if (found.form == Form::list && !found.list.has_entry())
    write_configuration(found.path + saved_ending, found.list.text);
  write_configuration(path, text, found.form == Form::list ? found.version : std::nullopt);
  outcome.placed_for = found.list.plugins.front();
  std::string more;
  if (is_moved(found)) {
    rename_file(found.path, found.path + saved_ending);
    more = fmt::format("; '{0}' is moved to '{0}{1}'", excerpt(found.path), saved_ending);
  } else if (found.form == Form::single) {
    more = fmt::format("; '{}', of which it is made, stays as it is", excerpt(found.path));
  }
  outcome.done.push_back(fmt::format("'{}': {} is the last plugin of network '{}'{}", excerpt(path), plugin_name,
                                     excerpt(found.list.network), more));
}

// Lists that were made of a single plugin which is gone, or not the first any more; `but` the one that is right.
void remove_made(const std::vector<std::string>& made, const std::string& but, Outcome& outcome) {
  for (const std::string& path : made) {
    if (path == but || !remove_file(path)) continue;
    flush_folder_of(path);
    outcome.done.push_back(fmt::format("removed '{}'", excerpt(path)));
  }
}

// Returns the lists whose single plugin was removed by its owner.
std::vector<std::string> orphans(const Search& all) {
  std::vector<std::string> found = all.made;
  std::erase_if(found, [](const std::string& path) {
    const std::string stem = path.substr(0, path.size() - std::string_view(made_ending).size());
    return exists(stem + ".conf") || exists(stem + ".json");
  });
  return found;
}

// The list becomes the single plugin again that it was made of, unless one of them has been changed since.
bool restore_single(const Found& found, const Ordered& list) {
  for (const char* ending : {".conf", ".json"}) {
    const std::string original = without_ending(found.path) + ending;
    const std::string saved = original + saved_ending;
    // Somebody has put it back, or we were killed before the list was removed.
    const bool is_back = exists(original);
    const auto single = list_in(is_back ? original : saved, Form::single);
    if (single && single->document == list) {
      if (!is_back) rename_file(saved, original);
      remove_file(found.path);  // until then both are there, and say the same
      remove_file(saved);
      flush_folder_of(found.path);
      return true;
    }
    remove_file(saved);
  }
  return false;
}

void remove_entry(const Found& found, Outcome& outcome) {
  const Ordered list = without_entry(found.path, found.list);
  if (!restore_single(found, list)) {
    const std::string saved = found.path + saved_ending;
    const auto before = list_in(saved, Form::list);
    write_configuration(found.path, before && before->document == list ? before->text : file_text(list), found.version);
  }
  outcome.done.push_back(fmt::format("'{}': {} is removed from network '{}'", excerpt(found.path), plugin_name,
                                     excerpt(found.list.network)));
}

// ---- A network of its own, for Multus

std::string standalone_path(const Folders& folders) {
  return fmt::format("{}/{}.conf", folders.configurations, plugin_name);
}

void put_standalone(const Folders& folders, const std::string& entry, Outcome& outcome) {
  const std::string path = standalone_path(folders);
  // With the name by which pods, and a NetworkAttachmentDefinition, name it.
  const std::string text =
      fmt::format("{{\"cniVersion\": \"0.3.1\", \"name\": \"{}\", {}\n", plugin_name, entry.substr(1));
  if (read_text(path) == text && is_file_of_mode(file_version(path), configuration_mode)) return;
  write_configuration(path, text);
  outcome.done.push_back(fmt::format("'{}': the network {} of Multus", excerpt(path), plugin_name));
}

Status::Configuration configuration_of(const Found& found) {
  const Conflist& list = found.list;
  const Ordered entry = list.entry_at_end();
  return {.path = found.path,
          .network = list.network,
          .cni_version = list.cni_versions.empty() ? "" : list.cni_versions.front(),
          .plugins = list.plugins,
          .entry = entry.is_null() ? "" : entry.dump()};
}

// Others may write to the directory at the same time: then everything is looked at again.
template <typename Act>
Outcome undisturbed(Act act) {
  constexpr int most_attempts = 10;
  for (int attempt = 1;; ++attempt) {
    try {
      return act();
    } catch (const Error& error) {
      if (error.code() != ExitCode::busy || attempt == most_attempts) throw;
    }
  }
}

}  // namespace

std::string running_program(bool allow_dynamic) {
  if (!allow_dynamic && getauxval(AT_BASE) != 0) {
    throw Error(
        ExitCode::usage, "this program needs shared libraries, which the node may lack or lose",
        "install with the static program (the package and the image have it; scripts/build static makes it), or "
        "add --allow-dynamic");
  }
  auto content = read_program("/proc/self/exe");
  if (!content) throw system_error(errno, "cannot read the running program: /proc/self/exe");
  return *std::move(content);
}

Outcome install(const Folders& folders, const std::string& program, const std::string& entry) {
  return undisturbed([&] {
    Outcome outcome;
    const Descriptor locked = lock(folders.configurations);
    if (folders.standalone) {
      put_program(folders, program, outcome);
      put_standalone(folders, entry, outcome);
      return outcome;
    }
    const Search all = search(folders.configurations);
    if (all.valid.empty()) remove_made(orphans(all), "", outcome);
    const Found& found = used(all, folders.configurations);
    const Ordered list = with_entry(found.path, found.list, entry);
    if (is_moved(found)) check_free(list_path(found));
    put_program(folders, program, outcome);
    put_entry(found, list, outcome);
    remove_made(all.made, list_path(found), outcome);
    outcome.problems = problems_of(all, folders, found);
    return outcome;
  });
}

Outcome uninstall(const Folders& folders, bool at_once) {
  return undisturbed([&] {
    Outcome outcome;
    if (exists(folders.configurations)) {
      const Descriptor locked = lock(folders.configurations);
      const std::string alone = standalone_path(folders);
      if (remove_file(alone)) outcome.done.push_back(fmt::format("removed '{}'", excerpt(alone)));
      const Search all = search(folders.configurations);
      for (const Found& found : all.valid) {
        if (found.list.has_entry()) remove_entry(found, outcome);
        const std::string saved = found.path + saved_ending;
        std::vector<std::string> left{temporary_name(list_path(found))};
        if (found.form == Form::list) left.insert(left.end(), {saved, temporary_name(saved)});
        std::ranges::for_each(left, remove_file);
      }
      remove_made(all.made, "", outcome);
      if (!all.may_name_ours.empty()) {
        throw Error(ExitCode::failed,
                    fmt::format("{}; it may name {}, so the program is not removed", all.may_name_ours, plugin_name),
                    "correct the file or remove it, then run it again");
      }
      for (const auto* unread : {&all.before, &all.after}) {
        for (const std::string& each : *unread) outcome.warnings.push_back("not checked: " + each);
      }
    }
    const std::string path = program_path(folders);
    if (!at_once && exists(path) && !attached_containers(folders.records, folders.cache).empty()) {
      outcome.warnings.push_back(
          fmt::format("'{}' is kept: CRI-O needs it to remove the pods that were created with it; run it again when "
                      "they are gone; --now removes it at once",
                      excerpt(path)));
      return outcome;
    }
    if (remove_file(path)) outcome.done.push_back(fmt::format("removed '{}'", excerpt(path)));
    remove_file(temporary_name(path));
    return outcome;
  });
}

void hold_watch(const Folders& folders, Descriptor& held) {
  struct stat of_held {};
  struct stat now {};
  const bool is_there = stat(folders.programs.c_str(), &now) == 0;
  const bool is_held = held.valid() && fstat(held.get(), &of_held) == 0;
  if (!is_there || (is_held && of_held.st_dev == now.st_dev && of_held.st_ino == now.st_ino)) return;
  held = Descriptor(open(folders.programs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!held.valid() || flock(held.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  held = Descriptor();
  throw Error(ExitCode::busy, fmt::format("another process watches '{}' already", excerpt(folders.programs)),
              "this one waits until that ends: each would undo what the other does");
}

bool is_watched(const Folders& folders) {
  const Descriptor folder(open(folders.programs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.valid() && flock(folder.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::vector<std::string> folders_to_watch(const Folders& folders) {
  std::vector<std::string> all{folders.programs, folders.configurations};
  if (!exists(folders.configurations)) return all;
  for (const std::string& name : configuration_names(folders.configurations)) {
    const std::string folder = folder_above(resolved(folders.configurations + "/" + name));
    if (std::ranges::find(all, folder) == all.end()) all.push_back(folder);
  }
  return all;
}

std::vector<std::string> folders_to_write(const Folders& folders) {
  std::vector<std::string> inner{folders.programs, folders.configurations};
  try {
    inner = folders_to_watch(folders);
  } catch (const Error&) {  // who installs says it
  }
  std::vector<std::string> all;
  for (const std::string& folder : inner) {
    const std::string path = resolved(folder);
    std::string outer = folder_above(path);
    if (outer == "/" && access(path.c_str(), F_OK) == 0) outer = path;
    while (access(outer.c_str(), F_OK) != 0 && outer != "/") outer = folder_above(outer);
    all.push_back(outer);
  }
  return all;
}

Status status(const Folders& folders, const std::string& program) {
  Status status;
  status.program.path = program_path(folders);
  const std::string shown = excerpt(status.program.path);
  if (const auto content = read_program(status.program.path)) {
    status.program.present = true;
    status.program.same = *content == program;
    status.program.version = version_in(*content);
    if (!status.program.same) {
      status.problems.push_back(fmt::format("'{}' is not this program, but {}", shown,
                                            status.program.version.empty() ? "another one"
                                            : status.program.version == version
                                                ? "another build of version " + status.program.version
                                                : "version " + status.program.version));
    } else if (!is_file_of_mode(file_version(status.program.path), program_mode)) {
      status.problems.push_back(fmt::format("'{}': expected a file of mode 0755", shown));
    }
  } else {
    const Error error = system_error(errno, fmt::format("'{}' cannot be read", shown));
    status.is_permitted = error.code() != ExitCode::not_permitted;
    status.problems.emplace_back(error.what());
  }

  try {
    status.attached = attached_containers(folders.records, folders.cache);
  } catch (const Error& error) {
    if (error.code() == ExitCode::not_permitted) status.is_permitted = false;
    status.problems.emplace_back(error.what());
  }

  try {
    if (folders.standalone) {
      const Found found = read_configuration(folders.configurations, fmt::format("{}.conf", plugin_name));
      status.configuration = configuration_of(found);
      if (std::string problem = refused_entry(found); !problem.empty()) status.problems.push_back(std::move(problem));
      return status;
    }
    const Search all = search(folders.configurations);
    for (const std::string& path : orphans(all))
      status.problems.push_back(
          fmt::format("'{}' was left when the file that it is made of was removed", excerpt(path)));
    Found found = used(all, folders.configurations);
    if (const std::string made = list_path(found); found.form == Form::single && !is_moved(found) && exists(made)) {
      const Ordered of = found.list.document;
      found = read_configuration(folders.configurations, made.substr(made.rfind('/') + 1));
      if (found.list.has_entry() && without_entry(made, found.list) != of)
        status.problems.push_back(fmt::format("'{}' is not made of its single plugin as that is now", excerpt(made)));
    }
    std::ranges::move(problems_of(all, folders, found), std::back_inserter(status.problems));
    const Status::Configuration& configuration = status.configuration.emplace(configuration_of(found));
    if (!found.list.has_entry()) {
      status.problems.push_back(fmt::format("'{}': {} is not among the plugins", excerpt(found.path), plugin_name));
    } else if (configuration.entry.empty()) {
      status.problems.push_back(fmt::format("'{}': {} is not the last plugin, or not the only one of its kind",
                                            excerpt(found.path), plugin_name));
    }
  } catch (const Error& error) {
    if (error.code() == ExitCode::not_permitted) status.is_permitted = false;
    status.problems.emplace_back(error.what());
  }
  return status;
}

}  // namespace sidetrack::cni
