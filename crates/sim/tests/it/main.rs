//! The simulator: that it keeps its promises, and finds those that others break.

mod campaign;
mod congestion;
mod dead_holder;
mod growing;
mod network;
mod programs;
mod replicas;
mod scale;
mod sites;
mod topologies;
mod traces;
mod workloads;
