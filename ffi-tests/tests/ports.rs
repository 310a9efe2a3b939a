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

/// Runs one test of the program.
#[track_caller]
fn run(test: &str) {
    let program = barebox();
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
    ($($name:ident = $test:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                run($test);
            }
        )*
    };
}

tests! {
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
