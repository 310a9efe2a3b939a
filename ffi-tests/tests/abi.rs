//! The C interface, tried by C programs over a network of one cable (`ffi-tests/c`). Each test runs under valgrind where
//! there is one: every frame, every sink and the stack's own memory are blocks of exactly the length they have.

use bootlace_lab::programs::{compile, library};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The program made of `ffi-tests/c/NAME.c`, built once per test process.
fn program(name: &'static str) -> PathBuf {
    static FLOW: OnceLock<PathBuf> = OnceLock::new();
    static REENTER: OnceLock<PathBuf> = OnceLock::new();
    static TCP: OnceLock<PathBuf> = OnceLock::new();
    static PUT: OnceLock<PathBuf> = OnceLock::new();
    static HTTP: OnceLock<PathBuf> = OnceLock::new();
    static HOSTILE: OnceLock<PathBuf> = OnceLock::new();
    static INSIDE: OnceLock<PathBuf> = OnceLock::new();
    static SENDFILE: OnceLock<PathBuf> = OnceLock::new();
    static MISUSE: OnceLock<PathBuf> = OnceLock::new();
    static CHAOS: OnceLock<PathBuf> = OnceLock::new();
    let cell = match name {
        "flow" => &FLOW,
        "reenter" => &REENTER,
        "tcp" => &TCP,
        "put" => &PUT,
        "http" => &HTTP,
        "hostile" => &HOSTILE,
        "inside" => &INSIDE,
        "sendfile" => &SENDFILE,
        "chaos" => &CHAOS,
        _ => &MISUSE,
    };
    cell.get_or_init(|| {
        let library = library();
        let source = format!("ffi-tests/c/{name}.c");
        let mut sources = vec![source.as_str(), "ffi-tests/c/wire.c"];
        if name == "chaos" {
            sources.extend(["ffi-tests/c/chaos_calls.c", "ffi-tests/c/chaos_clients.c", "ffi-tests/c/chaos_host.c"]);
        }
        let args = ["-Iffi-tests/c", library.to_str().expect("UTF-8")];
        compile(&format!("abi_{name}"), &sources, &args)
    })
    .clone()
}

/// Runs one test of a program.
#[track_caller]
fn run(name: &'static str, test: &str) {
    run_args(name, &[test]);
}

/// Runs a program, under valgrind where there is one.
#[track_caller]
fn run_args(name: &'static str, args: &[&str]) {
    let program = program(name);
    let valgrind = Command::new("valgrind").arg("--version").output().is_ok_and(|o| o.status.success());
    let mut command = if valgrind {
        let mut c = Command::new("valgrind");
        c.args(["-q", "--error-exitcode=9", "--leak-check=full", "--track-origins=yes"]).arg(program);
        c
    } else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "valgrind is missing");
        Command::new(program)
    };
    let out = command.args(args).output().expect("the program starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{name} {args:?}: {}\n{said}", out.status);
}

/// One test function for each test of a C program.
macro_rules! tests {
    ($($program:literal: $($name:ident = $test:literal),* ;)*) => {
        $($(
            #[test]
            fn $name() {
                run($program, $test);
            }
        )*)*
    };
}

tests! {
    "flow":
        a_pull_nic_boots = "pull",
        a_push_only_nic_boots_with_the_blocking_call = "push",
        a_nic_without_buffers_boots_from_the_stacks_frames = "own_frames",
        a_gathering_nic_boots = "gather",
        an_asynchronous_nic_boots_and_holds_the_stop_up = "async",
        a_token_is_that_nics_which_was_given_it = "async_two",
        a_reset_ends_all_tokens = "async_reset",
        a_nic_that_is_busy_every_other_time_loses_nothing = "busy",
        a_nic_that_fails_ends_operations_in_time = "nic_fails",
        two_stacks_work_in_one_program = "two_stacks",
        a_nonzero_poll_ends_every_blocking_call = "poll_ends",
        a_send_from_a_handler_leaves_at_once = "send_from_handler",
        sockets_keep_their_promises = "sockets",
        a_socket_works_before_an_address_is_set = "without_address",
        raw_hooks_see_frames_and_packets = "hooks",
        addresses_and_routes_are_kept = "routes",
        tftp_tells_why_it_failed = "tftp_errors",
        a_file_is_read_in_pieces = "file_reads";
    "put":
        every_kind_of_source_is_sent_by_tftp = "copied",
        every_kind_of_source_is_sent_by_tftp_by_a_gathering_nic = "gathered",
        tftp_put_tells_why_it_failed = "errors";
    "http":
        files_come_by_http_and_rests_are_fetched_later = "whole",
        http_tells_why_it_failed = "failures",
        a_file_is_read_by_http_in_pieces = "pieces";
    "hostile":
        a_kept_operation_does_not_bring_back_its_connection = "stale_connect",
        a_connection_nobody_was_told_of_ends_with_its_operation = "untold_connect",
        who_asks_late_is_told_late = "late_notify",
        counts_that_no_stream_has_are_refused = "endless",
        a_connection_goes_on_over_another_nic = "nic_replaced",
        a_waiting_http_connection_ends_with_the_stack = "waiting_http",
        a_nic_that_never_has_room_again_ends_operations_in_time = "stuck_nic";
    "inside":
        case_k02_every_call_of_streams_from_every_callback = "every_call",
        case_k02_streams_closed_from_every_callback = "closing",
        case_k02_stop_from_every_callback_of_streams = "stopping";
    "reenter":
        case_k02_every_call_from_every_callback = "every_call",
        case_k02_close_from_every_callback = "closing",
        case_k02_stop_from_every_callback = "stopping",
        case_k02_stop_ends_the_blocking_call = "stop_ends_wait",
        case_k02_remove_the_nic_from_every_callback = "removing",
        case_k02_a_new_operation_from_the_last_ones_end = "chain";
    "tcp":
        connections_carry_bytes_and_end_in_good_order = "exchange",
        connections_that_cannot_be_are_refused = "refusals",
        a_body_lands_in_memory_between_bytes_of_the_ring = "regions",
        files_are_sent_by_a_copying_nic = "files_copied",
        files_are_sent_by_a_gathering_nic = "files_gathered",
        files_are_sent_by_an_asynchronous_nic = "files_async",
        handlers_of_connections_and_listeners_work = "handlers";
    "sendfile":
        files_over_a_bad_cable_by_a_copying_nic = "hostile_copied",
        files_over_a_bad_cable_by_a_gathering_nic = "hostile_gathered",
        files_over_a_bad_cable_by_a_nic_that_is_late_with_its_tokens = "hostile_late",
        files_of_no_length_in_a_row_and_closed_behind = "in_a_row",
        case_s02_files_that_shrink_fail_or_lie = "bad_files",
        sources_may_call_back = "calls_back";
    "misuse":
        a_stack_is_made_of_sound_memory_alone = "init",
        structs_of_other_versions_are_read_and_wrong_sizes_refused = "sizes",
        stale_and_foreign_handles_are_refused = "handles",
        impossible_drivers_are_refused = "drivers",
        nfs_is_checked_before_anything_is_sent = "nfs",
        the_stacks_own_memory_is_refused = "own_memory",
        a_stack_without_frames_sends_through_the_drivers_buffers = "no_frames",
        case_e02_frames_of_every_length = "frame_lengths",
        case_e05_frames_and_sinks_at_every_alignment = "alignments",
        case_k01_the_same_trace_across_the_clocks_wrap = "clock_wraps",
        case_k01_a_clock_that_stands_or_jumps = "clock_stands";
}

/// Random calls for some seeds, at full speed.
#[track_caller]
fn chaos(seeds: std::ops::RangeInclusive<u32>, steps: u32) {
    let program = program("chaos");
    for seed in seeds {
        let args = [seed.to_string(), steps.to_string()];
        let out = Command::new(&program).args(&args).output().expect("the program starts");
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "chaos {args:?}: {}\n{said}", out.status);
    }
}

/// The lowest three bits of a seed choose the kind of NIC, and whether the stacks are stopped in the midst or let end.
#[test]
fn random_calls_leave_everything_free() {
    chaos(1..=8, 40_000);
}

#[test]
fn random_calls_touch_no_memory_but_theirs() {
    for seed in ["11", "16"] {
        run_args("chaos", &[seed, "800"]);
    }
}

#[test]
#[ignore = "takes a minute: the long run"]
fn random_calls_of_many_seeds_leave_everything_free() {
    chaos(1000..=1999, 40_000);
    chaos(1..=8, 1_000_000);
}

/// Every function of the header that takes a stack is among the random calls, but the one that ends it.
#[test]
fn random_calls_know_the_whole_header() {
    let out = Command::new(program("chaos")).arg("names").output().expect("the program starts");
    assert!(out.status.success());
    let names = String::from_utf8(out.stdout).expect("ASCII");
    let header =
        std::fs::read_to_string(bootlace_lab::programs::root().join("include/bootlace.h")).expect("the header");
    let functions: Vec<&str> = header
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter_map(|line| line.split_once("(lace_stack *net"))
        .filter_map(|(before, _)| before.rsplit([' ', '*']).next())
        .collect();
    assert!(functions.len() > 100, "{functions:?}");
    for function in functions {
        let known = function == "lace_stack_stop" || names.lines().any(|name| name == function);
        assert!(known, "{function} is missing in ffi-tests/c/chaos_calls.c or chaos_clients.c");
    }
}

/// Compiles a source against the header alone.
#[track_caller]
fn compiles(compiler: &str, args: &[&str], source: &str) {
    let root = bootlace_lab::programs::root();
    let out = Command::new(compiler)
        .current_dir(&root)
        .args(["-c", "-o", "/dev/null", "-Iinclude", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .args(args)
        .arg(source)
        .output()
        .expect("a compiler");
    assert!(out.status.success(), "{compiler} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn layouts_are_frozen() {
    compiles("gcc", &["-std=c11"], "ffi-tests/c/layout.c");
    if std::env::consts::ARCH == "x86_64" {
        compiles("gcc", &["-std=c11", "-m32", "-ffreestanding"], "ffi-tests/c/layout.c");
    }
}

#[test]
fn the_design_reads_in_c_and_cxx() {
    compiles("gcc", &["-std=c99"], "ffi-tests/c/reads.c");
    compiles("g++", &["-std=c++11", "-x", "c++"], "ffi-tests/c/reads.c");
}
