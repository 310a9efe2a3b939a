//! The glue of the bootloader ports, compiled against declarations of our own and driven as the bootloader would
//! (`ffi-tests/ports`), under valgrind where there is one.

use bootlace_lab::programs::{compile, library};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// barebox's glue with a barebox of one file around it, with the warnings that barebox itself builds with.
fn barebox() -> PathBuf {
    static DONE: OnceLock<PathBuf> = OnceLock::new();
    DONE.get_or_init(|| {
        let library = library();
        let sources =
            ["ffi-tests/ports/barebox/test.c", "ffi-tests/ports/barebox/board.c", "c-examples/barebox/net-lace.c"];
        let args = [
            "-std=gnu11",
            "-Wno-pedantic",
            "-Wno-pointer-sign",
            "-Wno-unused-parameter",
            "-funsigned-char",
            "-fno-common",
            "-Iffi-tests/ports/barebox",
            "-Iffi-tests/ports/barebox/include",
            library.to_str().expect("UTF-8"),
        ];
        compile("port_barebox", &sources, &args)
    })
    .clone()
}

/// U-Boot's glue with a U-Boot of one file around it, as release 2023.01 has it, and as the tree of 2026 does (`new`).
fn u_boot(new: bool) -> PathBuf {
    static DONE: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    DONE[usize::from(new)]
        .get_or_init(|| {
            let library = library();
            let glue = ["", "-load", "-ask", "-http"].map(|part| format!("c-examples/u-boot/net-lace{part}.c"));
            let mut sources = vec!["ffi-tests/ports/u-boot/test.c", "ffi-tests/ports/u-boot/board.c"];
            sources.extend(glue.iter().map(String::as_str));
            let args = [
                "-std=gnu11",
                "-Wno-pedantic",
                "-Wno-pointer-sign",
                "-Wno-unused-parameter",
                "-Wno-sign-compare",
                "-funsigned-char",
                "-fno-common",
                "-Iffi-tests/ports/u-boot",
                "-Iffi-tests/ports/u-boot/include",
                if new { "-DCONFIG_NET_LEGACY=1" } else { "-UCONFIG_NET_LEGACY" },
                library.to_str().expect("UTF-8"),
            ];
            compile(if new { "port_u_boot_new" } else { "port_u_boot" }, &sources, &args)
        })
        .clone()
}

/// A test of U-Boot's glue for both trees.
fn both(test: &str) {
    run(u_boot(false), test);
    run(u_boot(true), test);
}

/// Runs one test of the program.
#[track_caller]
fn run(program: PathBuf, test: &str) {
    let valgrind = Command::new("valgrind").arg("--version").output().is_ok_and(|o| o.status.success());
    let mut command = if valgrind {
        let mut c = Command::new("valgrind");
        c.args(["-q", "--error-exitcode=9", "--track-origins=yes"]).arg(program);
        c
    } else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "valgrind is missing");
        Command::new(program)
    };
    let out = command.arg(test).output().expect("the program starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{test}: {}\n{said}", out.status);
}

/// One test function for each test of the program.
macro_rules! tests {
    ($run:expr; $($name:ident = $test:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                $run($test);
            }
        )*
    };
}

tests! {
    |test| run(barebox(), test);
    barebox_connections_know_the_way_when_they_are_opened = "open",
    barebox_hears_of_nobody_and_of_ctrl_c_in_time = "nobody",
    barebox_is_told_when_there_is_no_way = "no_way",
    barebox_sends_in_a_receive_handler = "send_in_handler",
    barebox_binds_and_redirects_behind_ones_back = "bind",
    barebox_gets_addresses_on_two_devices = "dhcp",
    barebox_pings_and_is_pinged = "ping",
    barebox_unregisters_in_a_receive_handler = "unregister_in_handler",
    barebox_polls_from_a_drivers_send = "poller_in_send",
    barebox_monitors_and_switch_tags_are_kept = "hooks",
    barebox_devices_change_and_go = "device_goes",
    barebox_does_not_grow_over_600_connections = "growth",
    barebox_runs_out_of_memory = "no_memory",
    barebox_opens_in_a_receive_handler = "open_in_handler",
    barebox_helpers_and_settings = "helpers",
}

tests! {
    both;
    u_boot_loads_and_says_so = "tftpboot",
    u_boot_does_as_its_environment_says = "environment",
    u_boot_saves = "tftpput",
    u_boot_asks_for_addresses_names_and_the_time = "questions",
    u_boot_returns_when_a_key_is_pressed = "keys",
    u_boot_refuses_what_has_no_place = "refused",
    u_boot_tries_again_on_the_next_card = "retries",
    u_boot_hands_frames_to_efi = "efi",
}
