// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <nlohmann/json.hpp>

#include "model/error.h"
#include "model/printable.h"
#include "node/plugin.h"
#include "options/flags.h"
#include "system/file.h"
#include "system/folder.h"
#include "system/read_write.h"

namespace sidetrack::cni {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t usual_size = 4096;  // more than a record has, mostly
constexpr std::size_t longest_id = 200;   // a file's name has at most 255 bytes, and ours one more than the id

Error failed(const std::string& what, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return system_error(
      error, what, ExitCode::failed,
      full ? "make room on its file system" : "the directory must be root's, on a file system that can be written");
}

// What the record is written to first. No id of a container begins so.
std::string unfinished(const std::string& container_id) { return "." + container_id; }

constexpr std::pair<const char*, std::string Record::*> fields[] = {
    {"container_id", &Record::container_id},
    {"interface", &Record::interface_name},
    {"netns", &Record::netns},
    {"namespace", &Record::pod_namespace},
    {"pod", &Record::pod_name},
    {"network", &Record::network},
    {"network_namespace", &Record::network_namespace},
};

std::string text_of(const Record& record) {
  Json document;
  for (const auto& [key, value] : fields) document[key] = record.*value;
  document["options"] = record.options;
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// "--proxy-uid=1337", or "ISTIO_OUTBOUND_OWNER_GROUPS=5" of what is no option: with its value in the same word, and the
// value itself, not the name of a file.
bool is_as_written(std::string_view option) {
  const auto equals = option.find('=');
  return (option.starts_with("--") || flag_of_variable(option.substr(0, equals)) != nullptr) &&
         equals != std::string_view::npos && !option.substr(equals).starts_with("=@");
}

Record record_of(const std::string& text, const std::string& container_id) {
  const auto refuse = [](const std::string& what) { throw Error(ExitCode::failed, what); };
  const auto document = Json::parse(text, nullptr, false);
  if (!document.is_object()) refuse("expected a JSON object");
  Record record;
  for (const auto& [key, value] : fields) {
    const auto found = document.find(key);
    if (found == document.end() || !found->is_string()) refuse(fmt::format("expected a string as \"{}\"", key));
    record.*value = found->get<std::string>();
  }
  const auto options = document.find("options");
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (options == document.end() || !options->is_array() || !std::ranges::all_of(*options, is_text)) {
    refuse("expected a list of strings as \"options\"");
  }
  record.options = options->get<std::vector<std::string>>();
  if (const auto strange = std::ranges::find_if_not(record.options, is_as_written); strange != record.options.end())
    refuse(fmt::format("unknown option '{}': ADD does not write it", excerpt(*strange)));
  if (!record.netns.starts_with('/'))
    refuse(fmt::format("its \"netns\" is '{}': expected a path", excerpt(record.netns)));
  if (record.container_id != container_id) {
    refuse(fmt::format("its \"container_id\" is '{}'", excerpt(record.container_id)));
  }
  return record;
}

void make_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return;
  if (errno != ENOENT) throw failed("cannot make the directory " + path, errno);
  const std::string above = path.substr(0, path.rfind('/'));
  if (mkdir(above.c_str(), 0755) != 0 && errno != EEXIST) throw failed("cannot make the directory " + above, errno);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw failed("cannot make the directory " + path, errno);
}

// One writer at a time; released with the descriptor, or by the end of the process.
class Turn {
 public:
  Turn(const Descriptor& folder, const std::string& path) : folder_(folder) {
    while (flock(folder_.get(), LOCK_EX) != 0) {
      if (errno != EINTR) throw failed("cannot lock the directory " + path, errno);
    }
  }
  ~Turn() { flock(folder_.get(), LOCK_UN); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  const Descriptor& folder_;
};

std::vector<std::string> names_in(const std::string& path) {
  const auto entries = entries_of(path);
  if (!entries && errno != ENOENT) throw failed("cannot read the directory " + path, errno);
  std::vector<std::string> names;
  if (entries) std::ranges::transform(*entries, std::back_inserter(names), &FolderEntry::name);
  return names;
}

std::optional<Record> read_record(const std::string& path, const std::string& container_id) {
  const host::FileText read = host::read_file(-1, path);
  if (!read.text && read.error == ENOENT) return std::nullopt;
  const std::string what = fmt::format("cannot read the record {}: ", excerpt(path));
  if (!read.text) {
    const bool refused = read.error == EACCES || read.error == EPERM;
    throw Error(refused ? ExitCode::not_permitted : ExitCode::failed, what + read.problem);
  }
  try {
    return record_of(*read.text, container_id);
  } catch (const Error& error) {
    throw Error(error.code(), what + error.what());
  }
}

}  // namespace

bool is_container_id(std::string_view text) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && text.size() <= longest_id && letter_or_digit(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return letter_or_digit(c) || c == '_' || c == '.' || c == '-'; });
}

RecordFolder::RecordFolder(const std::string& path) : path_(path) {
  const auto open_folder = [&] { return Descriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); };
  folder_ = open_folder();
  if (!folder_.valid() && errno == ENOENT) {
    make_folder(path);
    folder_ = open_folder();
  }
  if (!folder_.valid()) throw failed("cannot open the directory " + path, errno);
  struct stat status {};
  if (fstat(folder_.get(), &status) != 0) throw failed("cannot look at the directory " + path, errno);
  if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(ExitCode::failed,
                fmt::format("the directory {} belongs to user {} and has the mode {:04o}: others may write to it", path,
                            status.st_uid, status.st_mode & 07777),
                "it must be root's, with the mode 0700");
  }
}

void RecordFolder::write(const Record& record) const {
  const std::string name = record.container_id;
  const std::string first = unfinished(name);
  const std::string what = "cannot write the record " + in_folder(name);
  const Turn turn(folder_, path_);
  write_new(first, text_of(record), what);
  if (renameat(folder_.get(), first.c_str(), folder_.get(), name.c_str()) != 0) {
    const int error = errno;
    unlinkat(folder_.get(), first.c_str(), 0);
    throw failed(what, error);
  }
  fsync(folder_.get());
}

void RecordFolder::write_new(const std::string& name, std::string_view text, const std::string& what) const {
  const Descriptor file(
      openat(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) throw failed(what, errno);
  errno = write_all(file.get(), text);
  if (errno == 0 && fsync(file.get()) == 0) return;
  const int error = errno;
  unlinkat(folder_.get(), name.c_str(), 0);
  throw failed(what, error);
}

void RecordFolder::remove(const std::string& container_id) const {
  const Turn turn(folder_, path_);
  for (const std::string& name : {unfinished(container_id), container_id}) {
    if (unlinkat(folder_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
      throw failed("cannot remove the record " + in_folder(name), errno);
    }
  }
  fsync(folder_.get());
}

void RecordFolder::remove_leftovers() const {
  const Turn turn(folder_, path_);
  for (const std::string& name : names_in(path_)) {
    if (!name.starts_with('.') || unlinkat(folder_.get(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
    throw failed("cannot remove " + in_folder(name), errno);
  }
}

void RecordFolder::require_writable() const {
  const std::string name = unfinished("-trial");  // no id of a container begins with a dash
  const Turn turn(folder_, path_);
  write_new(name, std::string(usual_size, '\n'), fmt::format("cannot write to the directory {}", path_));
  unlinkat(folder_.get(), name.c_str(), 0);
}

void remove(const std::string& container_id, const std::string& folder) {
  if (access(folder.c_str(), F_OK) != 0 && errno == ENOENT) return;
  RecordFolder(folder).remove(container_id);
}

std::optional<Record> read(const std::string& container_id, const std::string& folder) {
  return read_record(folder + "/" + container_id, container_id);
}

Records read_all(const std::string& folder) {
  Records result;
  for (const std::string& name : names_in(folder)) {
    if (name.starts_with('.')) continue;  // not finished
    const std::string path = folder + "/" + name;
    try {
      if (!is_container_id(name)) throw Error(ExitCode::failed, excerpt(path) + ": its name is no container id");
      if (auto record = read_record(path, name)) result.records.push_back(*std::move(record));
    } catch (const Error& error) {
      result.problems.emplace_back(error.what());
    }
  }
  return result;
}

namespace {

// Up to the first character that is none of its digits.
std::string decode_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) break;
    group = group << 6U | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> static_cast<unsigned>(bits) & 0xffU);
  }
  return bytes;
}

// Returns the container of a file of libcni's cache, if its configuration names us: {"kind": "cniCacheV1",
// "containerId": …, "config": BASE64, …}.
std::string container_in(const std::string& text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) return "";
  const auto field = [&](const char* key) {
    const auto found = document.find(key);
    return found != document.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const bool names_us = decode_base64(field("config")).find(fmt::format("\"{}\"", plugin_name)) != std::string::npos;
  return names_us ? field("containerId") : "";
}

// Returns whether the pod of the record ended without DEL: containerd calls it for the plugins that the configuration
// names by then. Where network namespaces are not to be seen, from within a container, no pod is taken for ended.
bool has_ended(const std::string& container_id, const std::string& folder) {
  try {
    const auto record = read(container_id, folder);
    if (!record) return false;
    const std::string parent = record->netns.substr(0, record->netns.rfind('/'));
    return access(parent.c_str(), F_OK) == 0 && access(record->netns.c_str(), F_OK) != 0 && errno == ENOENT;
  } catch (const Error&) {
    return false;  // what cannot be read says that something was installed
  }
}

std::vector<std::string> files_in(const std::string& folder) {
  const auto entries = entries_of(folder);
  if (!entries && errno != ENOENT && errno != ENOTDIR)
    throw system_error(errno, fmt::format("cannot read the directory '{}'", excerpt(folder)));
  std::vector<std::string> names;
  for (const FolderEntry& entry : entries.value_or(std::vector<FolderEntry>())) {
    if (!entry.is_folder) names.push_back(entry.name);
  }
  return names;
}

}  // namespace

std::vector<std::string> attached_containers(const std::string& records, const std::string& cache) {
  std::vector<std::string> ids;
  for (const std::string& name : files_in(records)) {
    if (!name.starts_with('.') && !has_ended(name, records)) ids.push_back(name);
  }
  for (const std::string& name : files_in(cache)) {
    const std::string path = fmt::format("{}/{}", cache, name);
    const host::FileText file = host::read_file(-1, path);
    if (file.error == EACCES) throw system_error(file.error, fmt::format("cannot read '{}'", excerpt(path)));
    const std::string id = file.text ? container_in(*file.text) : "";
    if (!id.empty()) ids.push_back(id);
  }
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

}  // namespace sidetrack::cni
