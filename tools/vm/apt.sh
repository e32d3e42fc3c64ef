# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# A private apt for the kernel cache: own lists, own sources, no root needed, and
# the host's apt is left alone. The suites are fixed, the archive they come from
# is the one this machine's apt already uses. Source lib.sh first.

# apt_for ARCHITECTURE: packages of another one than this machine's ('') have lists
# of their own, and dpkg need not know of it.
apt_for() {
	apt_arch=$1
	apt_dir=${cache:?}/apt${apt_arch:+-$apt_arch}
	export APT_CONFIG=$apt_dir/apt.conf
}
apt_for ''

host_archive() { # host_archive LABEL: the URI of Debian's archive with this label
	# shellcheck disable=SC2016 # apt's fields
	APT_CONFIG='' apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' \
		'Created-By: Packages' |
		awk -F'|' -v label="$1" '$1 == "Debian" && $2 == label { print $3; exit }'
}

# Debian hosts name the archive in their sources but need not have the suites the
# kernels come from: newer stable, or no backports.
apt_setup() {
	local main security key=/usr/share/keyrings/debian-archive-keyring.gpg
	main=$(host_archive Debian)
	security=$(host_archive Debian-Security)
	[[ $main ]] || die "no Debian archive in apt's lists: run apt-get update on a Debian host"
	: "${security:=${main%/}-security}" # where it is usually, if apt here does not know it
	mkdir -p "$apt_dir"/{lists,archives}/partial "$apt_dir/parts"
	cat >"$apt_dir/sources.list" <<-END
		deb [signed-by=$key] $main bookworm main
		deb [signed-by=$key] $security bookworm-security main
		deb [signed-by=$key] $main trixie-backports main
	END
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

# Lists older than a day name packages that may be gone.
apt_ready() {
	[[ $(find "$apt_dir/updated" -mmin -1440 2>/dev/null) ]] || apt_update
}

# pkg_depends PACKAGE PATTERN: the first dependency that matches. Metapackages
# lead to the real ones, whose names change with each point release.
pkg_depends() {
	apt-cache depends --important "$1" 2>/dev/null |
		awk -v pattern="$2" '/Depends:/ && $NF ~ pattern { print $NF; exit }'
}

# pkg_unpack DIR PACKAGE...: download and unpack.
pkg_unpack() {
	local dir=$1 pkg deb tmp
	shift
	tmp=$(mktemp -d "$apt_dir/archives/get.XXXXXX")
	for pkg; do
		say "downloading $pkg"
		(cd "$tmp" && apt-get -qq download "$pkg" >&2) ||
			die "could not download $pkg: is the network up? if a newer one is out: make kernels-refresh"
	done
	mkdir -p "$dir"
	for deb in "$tmp"/*.deb; do
		dpkg-deb -x "$deb" "$dir"
	done
	rm -rf "$tmp"
}
