//! Circles of a directed graph: its strongly connected components of more than one node, by
//! Tarjan's algorithm.

/// The components of more than one node, each in ascending order, largest first.
pub(super) fn circles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        order: vec![None; edges.len()],
        lowest: vec![0; edges.len()],
        open: Vec::new(),
        is_open: vec![false; edges.len()],
        count: 0,
        found: Vec::new(),
    };
    for node in 0..edges.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    let mut found = search.found;
    found.sort_by_key(|circle| (usize::MAX - circle.len(), circle[0]));
    found
}

struct Search<'a> {
    edges: &'a [Vec<usize>],
    order: Vec<Option<usize>>,
    lowest: Vec<usize>,
    open: Vec<usize>,
    is_open: Vec<bool>,
    count: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// Depth first; a crate has a few hundred files, so recursion is shallow enough.
    fn visit(&mut self, node: usize) {
        let order = self.count;
        self.count += 1;
        self.order[node] = Some(order);
        self.lowest[node] = order;
        self.open.push(node);
        self.is_open[node] = true;
        for &next in &self.edges[node] {
            match self.order[next] {
                None => {
                    self.visit(next);
                    self.lowest[node] = self.lowest[node].min(self.lowest[next]);
                }
                Some(seen) if self.is_open[next] => {
                    self.lowest[node] = self.lowest[node].min(seen);
                }
                Some(_) => {}
            }
        }
        if self.lowest[node] == order {
            let start = self.open.iter().rposition(|&open| open == node).unwrap_or(0);
            let mut circle = self.open.split_off(start);
            circle.iter().for_each(|&member| self.is_open[member] = false);
            circle.sort_unstable();
            if circle.len() > 1 {
                self.found.push(circle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::circles;

    #[test]
    fn a_tree_has_no_circle_and_a_file_that_names_itself_is_none() {
        assert!(circles(&[vec![1, 2], vec![2], vec![2]]).is_empty());
    }

    #[test]
    fn circles_are_told_apart_though_one_leads_to_the_other() {
        let edges = [vec![1], vec![0, 2], vec![3], vec![4], vec![2]];
        assert_eq!(circles(&edges), [vec![2, 3, 4], vec![0, 1]]);
    }
}
