#!/bin/sh
# Installs Tine {{version}} for the current user.
#
# Usage: sh install.sh
#
# Environment:
#   TINE_INSTALL_DIR   folder for the command (default: ~/.local/bin)
#   TINE_DOWNLOAD_URL  folder with the archives of this release, if you use a mirror
#
# Needs curl or wget, tar, and sha256sum, shasum or openssl. Refuses a download whose checksum is not
# the one below. To uninstall, delete `tine` from the folder.
set -eu

version='{{version}}'
download_url="${TINE_DOWNLOAD_URL:-{{download}}}"
install_dir="${TINE_INSTALL_DIR:-${HOME:?HOME is not set}/.local/bin}"

# Prints the SHA-256 checksum of a platform's archive.
checksum_of() {
    case "$1" in
    linux-x86_64) echo '{{sha256.linux-x86_64}}' ;;
    linux-arm64) echo '{{sha256.linux-arm64}}' ;;
    macos-x86_64) echo '{{sha256.macos-x86_64}}' ;;
    macos-arm64) echo '{{sha256.macos-arm64}}' ;;
    esac
}

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Prints the name of this machine's platform.
platform() {
    system="$(uname -s)"
    machine="$(uname -m)"
    case "$system" in
    Linux) system=linux ;;
    Darwin) system=macos ;;
    MINGW* | MSYS* | CYGWIN*) fail "on Windows, run install.ps1 in PowerShell instead" ;;
    esac
    case "$machine" in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=arm64 ;;
    esac
    # A shell that Rosetta translates reports the wrong processor.
    if [ "$system" = macos ] && [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ]; then
        machine=arm64
    fi
    echo "$system-$machine"
}

# Downloads a file: `download URL FILE`. A download that is meant to be encrypted stays so when it is
# redirected.
download() {
    case "$1" in https:*) encrypted=yes ;; *) encrypted= ;; esac
    if has curl; then
        curl ${encrypted:+--proto =https --tlsv1.2} --fail --silent --show-error --location --output "$2" "$1"
    elif has wget; then
        wget ${encrypted:+--https-only} --quiet --output-document="$2" "$1"
    else
        fail "needs curl or wget; install one of them and run this again"
    fi || fail "cannot download $1; check your connection, or set TINE_DOWNLOAD_URL to a mirror"
}

# Prints the SHA-256 checksum of a file.
sha256() {
    if has sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    elif has openssl; then
        openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
    else
        fail "needs sha256sum, shasum or openssl to check the download; install one of them and run this again"
    fi
}

# Runs after the whole script was read, so that a download that breaks off does nothing.
main() {
    platform="$(platform)"
    expected="$(checksum_of "$platform")"
    [ -n "$expected" ] || fail "there is no binary for $platform; build from source instead: {{repository}}"

    scratch="$(mktemp -d)"
    trap 'rm -rf "$scratch"' EXIT
    name="tine-$version-$platform"
    echo "Downloading $download_url/$name.tar.gz"
    download "$download_url/$name.tar.gz" "$scratch/archive.tar.gz"
    actual="$(sha256 "$scratch/archive.tar.gz")"
    [ "$actual" = "$expected" ] ||
        fail "wrong checksum of $name.tar.gz: expected $expected, got $actual; nothing was installed"
    tar -xzf "$scratch/archive.tar.gz" -C "$scratch"

    mkdir -p "$install_dir"
    # Replaces a running `tine` without disturbing it.
    cp "$scratch/$name/tine" "$install_dir/.tine.new"
    chmod 755 "$install_dir/.tine.new"
    mv -f "$install_dir/.tine.new" "$install_dir/tine"
    echo "Installed $("$install_dir/tine" --version) as $install_dir/tine"
    case ":$PATH:" in
    *":$install_dir:"*) ;;
    *) echo "Add $install_dir to your PATH to run it as \`tine\`." ;;
    esac
}

main
