//! Statistics: one counter for each kind of drop and for each event worth counting.

macro_rules! counters {
    ($($name:ident = $text:literal, $doc:literal;)*) => {
        /// What is counted. The numbers are stable: new ones are added at the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Counter { $(#[doc = $doc] $name,)* }

        /// How many counters there are.
        pub const COUNTERS: usize = [$(Counter::$name),*].len();

        /// Their names in order of their numbers, each with a NUL behind it for C.
        pub const NAMES: &str = concat!($($text, "\0"),*);
    };
}

counters! {
    RxFrames = "rx_frames", "Frames received.";
    TxFrames = "tx_frames", "Frames sent.";
    TxBusy = "tx_busy", "The NIC had no room: the frame is tried again.";
    TxFailed = "tx_failed", "The NIC failed: the frame is lost.";
    DropShort = "drop_short", "Shorter than an Ethernet header.";
    DropOversize = "drop_oversize", "Longer than the MTU allows.";
    DropNotOurs = "drop_not_ours", "Destination hardware address neither ours nor a group we are in.";
    DropLlc = "drop_llc", "802.3 frames with an LLC header.";
    DropVlan = "drop_vlan", "A VLAN other than ours.";
    DropEthertype = "drop_ethertype", "EtherType that nobody takes.";
    DropArpMalformed = "drop_arp_malformed", "ARP packets that do not parse.";
    DropArpIgnored = "drop_arp_ignored", "ARP packets that must not teach us anything.";
    DropIpMalformed = "drop_ip_malformed", "IPv4 headers that do not parse.";
    DropIpChecksum = "drop_ip_checksum", "IPv4 header checksum wrong.";
    DropIpOptions = "drop_ip_options", "Source routes (RFC 791), which are refused.";
    DropIpSource = "drop_ip_source", "Source address that no host may have.";
    DropIpNotOurs = "drop_ip_not_ours", "Destination address not ours.";
    DropIpProtocol = "drop_ip_protocol", "IP protocol that nobody takes.";
    RxFragments = "rx_fragments", "Fragments received.";
    DropFragmentRoom = "drop_fragment_room", "Fragments for which reassembly has no room.";
    DropFragmentMalformed = "drop_fragment_malformed", "Fragments that are impossible: beyond 65,535 bytes, empty, or not a multiple of eight.";
    DropFragmentOverlap = "drop_fragment_overlap", "Datagrams discarded because fragments overlap (RFC 5722).";
    DropFragmentDuplicate = "drop_fragment_duplicate", "Exact duplicates of fragments.";
    DropReassemblyTimeout = "drop_reassembly_timeout", "Datagrams given up because pieces were missing at the deadline.";
    DropReassemblyEvicted = "drop_reassembly_evicted", "Datagrams given up to make room for another.";
    Reassembled = "reassembled", "Datagrams reassembled.";
    LandingMoved = "landing_moved", "Datagrams placed by guess that had to move when the header came.";
    DropLandingClaim = "drop_landing_claim", "Pieces of datagrams that lost their claim to another.";
    DropIcmpMalformed = "drop_icmp_malformed", "ICMP messages that do not parse.";
    DropIcmpChecksum = "drop_icmp_checksum", "ICMP checksum wrong.";
    DropIcmpIgnored = "drop_icmp_ignored", "ICMP messages that nothing here waits for.";
    DropIcmpRedirect = "drop_icmp_redirect", "ICMP redirects, which are never obeyed.";
    IcmpRateLimited = "icmp_rate_limited", "ICMP messages not sent because of the rate limit.";
    IcmpEchoAnswered = "icmp_echo_answered", "ICMP echo requests answered.";
    DropUdpMalformed = "drop_udp_malformed", "UDP headers that do not parse.";
    DropUdpChecksum = "drop_udp_checksum", "UDP checksum wrong.";
    DropUdpNoSocket = "drop_udp_no_socket", "UDP datagrams to a port without a socket.";
    DropUdpPeer = "drop_udp_peer", "UDP datagrams from another than the connected peer.";
    DropUdpQueue = "drop_udp_queue", "UDP datagrams for which the socket's queue had no room.";
    DropNeighbourQueue = "drop_neighbour_queue", "Frames dropped while they waited for a neighbour.";
    NeighbourFailed = "neighbour_failed", "Neighbours that did not answer.";
    NeighbourEvicted = "neighbour_evicted", "Neighbour entries given up for another.";
    NoRoute = "no_route", "Packets for which no route was found.";
    DropDhcpMalformed = "drop_dhcp_malformed", "DHCP messages that do not parse.";
    DropDhcpIgnored = "drop_dhcp_ignored", "DHCP messages not for us: another xid, hardware address or state.";
    DropDhcpUnusable = "drop_dhcp_unusable", "DHCP offers and acknowledgements with unusable contents.";
    DropDnsMalformed = "drop_dns_malformed", "DNS messages that do not parse.";
    DropDnsForged = "drop_dns_forged", "DNS messages that do not match the query.";
    DropTftpMalformed = "drop_tftp_malformed", "TFTP packets that do not parse.";
    DropTftpTid = "drop_tftp_tid", "TFTP packets from another host or port than the transfer's.";
    TftpDuplicate = "tftp_duplicate", "TFTP blocks that had come before.";
    DropTftpBlock = "drop_tftp_block", "TFTP blocks outside the window.";
    TftpRetransmit = "tftp_retransmit", "TFTP requests and acknowledgements sent again.";
    DropPingIgnored = "drop_ping_ignored", "Echo replies that match no request.";
    DropDally = "drop_dally", "Late datagrams of a finished transfer.";
    DropTcpMalformed = "drop_tcp_malformed", "TCP headers that do not parse.";
    DropTcpChecksum = "drop_tcp_checksum", "TCP checksum wrong.";
    DropTcpAddress = "drop_tcp_address", "TCP segments to broadcasts or groups.";
    DropTcpNoConnection = "drop_tcp_no_connection", "TCP segments to no connection and no listener.";
    DropTcpUnacceptable = "drop_tcp_unacceptable", "TCP segments that their connection's state does not allow, or outside its window.";
    DropTcpStamp = "drop_tcp_stamp", "TCP segments older than what came before them, by their timestamp (RFC 7323).";
    DropTcpNoRoom = "drop_tcp_no_room", "TCP data beyond the window, or for which there is no place.";
    DropTcpBacklog = "drop_tcp_backlog", "TCP connections not taken: the listener's backlog or the table is full.";
    TcpOutOfOrder = "tcp_out_of_order", "TCP segments out of order, kept.";
    TcpDuplicate = "tcp_duplicate", "TCP segments whose data had come.";
    TcpRetransmit = "tcp_retransmit", "TCP segments sent again, and timeouts.";
    TcpTimeout = "tcp_timeout", "TCP connections given up because the peer was silent.";
    TcpBlackHole = "tcp_black_hole", "Path MTUs lowered because full segments vanished.";
    TcpResetSent = "tcp_reset_sent", "TCP resets sent.";
    TcpResetReceived = "tcp_reset_received", "TCP resets believed.";
    TcpChallengeAck = "tcp_challenge_ack", "Acknowledgements sent instead of believing a segment (RFC 5961).";
    TcpRateLimited = "tcp_rate_limited", "TCP answers not sent because of a rate limit.";
    TcpEvicted = "tcp_evicted", "Connections in TIME-WAIT or half open given up for another.";
    DropRpcMalformed = "drop_rpc_malformed", "RPC replies that do not parse, or whose lengths are impossible.";
    DropRpcStale = "drop_rpc_stale", "RPC replies that answer no call, or come from another than who was called.";
    RpcRetransmit = "rpc_retransmit", "RPC calls sent again.";
    DropIgmpIgnored = "drop_igmp_ignored", "IGMP messages that mean nothing here.";
}

/// The counters of one stack. They wrap at 2³².
#[derive(Clone, Debug)]
pub struct Stats {
    values: [u32; COUNTERS],
}

impl Default for Stats {
    fn default() -> Self {
        Stats { values: [0; COUNTERS] }
    }
}

impl Stats {
    /// Counts one.
    #[inline]
    pub fn count(&mut self, counter: Counter) {
        if let Some(v) = self.values.get_mut(counter as usize) {
            *v = v.wrapping_add(1);
        }
    }

    /// The value of a counter.
    pub fn get(&self, counter: Counter) -> u32 {
        self.at(counter as usize).unwrap_or(0)
    }

    /// The value of the counter with number `index`, `None` where there is none.
    pub fn at(&self, index: usize) -> Option<u32> {
        self.values.get(index).copied()
    }
}
