# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# A private apt for the kernel cache: with lists and sources of its own, without root,
# and without changes to the host's apt. The suites are fixed; the archive is the one
# that this machine's apt uses. Source lib.sh first.

# apt_for ARCHITECTURE [SUITE]: use the package lists of this architecture, '' for this
# machine's. dpkg need not know the architecture. With SUITE, those of this suite alone,
# with its sources.
apt_for() {
	apt_arch=$1 apt_suite=${2-}
	apt_dir=${cache:?}/apt${apt_arch:+-$apt_arch}${apt_suite:+-$apt_suite}
	export APT_CONFIG=$apt_dir/apt.conf
}
apt_for ''

host_archive() { # host_archive LABEL: the URI of Debian's archive with this label
	# shellcheck disable=SC2016 # apt's fields
	APT_CONFIG='' apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' \
		'Created-By: Packages' |
		awk -F'|' -v label="$1" '$1 == "Debian" && $2 == label { print $3; exit }'
}

# The host's sources name the archive, but may lack the suites of the kernels: a newer
# release has other suites, and backports are optional.
apt_setup() {
	local main security key=/usr/share/keyrings/debian-archive-keyring.gpg
	main=$(host_archive Debian)
	security=$(host_archive Debian-Security)
	[[ $main ]] || die "no Debian archive in apt's lists: run apt-get update on a Debian host"
	: "${security:=${main%/}-security}" # its usual place, if apt here does not know it
	mkdir -p "$apt_dir"/{lists,archives}/partial "$apt_dir/parts"
	if [[ $apt_suite ]]; then
		printf "%s [signed-by=$key] $main $apt_suite main\n" deb deb-src >"$apt_dir/sources.list"
	else
		cat >"$apt_dir/sources.list" <<-END
			deb [signed-by=$key] $main bookworm main
			deb [signed-by=$key] $security bookworm-security main
			deb [signed-by=$key] $main trixie-backports main
		END
	fi
	cat >"$APT_CONFIG" <<-END
		Dir::Etc::SourceList "$apt_dir/sources.list";
		Dir::Etc::SourceParts "$apt_dir/parts";
		Dir::Etc::Preferences "$apt_dir/parts/none";
		Dir::Etc::PreferencesParts "$apt_dir/parts";
		Dir::State::Lists "$apt_dir/lists";
		Dir::State::Status "/dev/null";
		Dir::Cache "$apt_dir";
		Acquire::Languages "none";
		APT::Sandbox::User "root";
	END
	[[ ! $apt_arch ]] || cat >>"$APT_CONFIG" <<-END
		APT::Architecture "$apt_arch";
		APT::Architectures { "$apt_arch"; };
	END
}

apt_update() {
	apt_setup
	say "fetching package lists"
	apt-get -qq update >&2 || die "could not fetch package lists: is the network up?"
	touch "$apt_dir/updated"
}

# Lists older than a day may name packages that are no longer there.
apt_ready() {
	[[ $(find "$apt_dir/updated" -mmin -1440 2>/dev/null) ]] || apt_update
}

# pkg_depends PACKAGE PATTERN: the first dependency that matches. Metapackages
# lead to the real ones, whose names change with each point release.
pkg_depends() {
	apt-cache depends --important "$1" 2>/dev/null |
		awk -v pattern="$2" '/Depends:/ && $NF ~ pattern { print $NF; exit }'
}

# pkg_tree DIR PACKAGE...: download and unpack with all that they depend on, for a folder to change the root to.
pkg_tree() {
	local dir=$1 deb
	shift
	say "downloading $* and what they need"
	apt-get clean
	apt-get -qq -y --no-install-recommends --download-only -o Debug::NoLocking=1 install "$@" >&2 ||
		die "could not download $*: is the network up?"
	mkdir -p "$dir"
	for deb in "$apt_dir"/archives/*.deb; do
		dpkg-deb -x "$deb" "$dir"
	done
	say "$(du -sm "$dir" | cut -f 1) MB"
	apt-get clean
}

# pkg_unpack DIR PACKAGE...: download and unpack.
pkg_unpack() {
	local dir=$1 pkg deb tmp
	shift
	tmp=$(mktemp -d "$apt_dir/archives/get.XXXXXX")
	for pkg; do
		say "downloading $pkg"
		(cd "$tmp" && apt-get -qq download "$pkg" >&2) || {
			rm -rf "$tmp"
			die "could not download $pkg: is the network up? if a newer one is out: make kernels-refresh"
		}
	done
	mkdir -p "$dir"
	for deb in "$tmp"/*.deb; do
		dpkg-deb -x "$deb" "$dir"
	done
	say "$# package$((($# == 1)) || echo s), $(du -cm "$tmp"/*.deb | tail -n 1 | cut -f 1) MB"
	rm -rf "$tmp"
}
