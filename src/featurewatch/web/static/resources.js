// Resources of each view: a path and its parameters by the name under which the view finds it.
const ofCluster = (route, name) => (name ? `clusters/${encodeURIComponent(route.cluster)}/${name}` : `clusters/${encodeURIComponent(route.cluster)}`);
const lines = (text) => (text || '').split('\n').map((line) => line.trim()).filter(Boolean);

const VIEWS = {
  releases: (route) => ({ list: ['readiness', { target: route.target, verdict: route.verdict, q: route.q }] }),
  alerts: (route) => ({ list: ['alerts', { state: route.state || 'firing' }] }),
  sources: () => ({ list: ['sources', {}] }),
  cluster: (route) => ({
    cluster: [ofCluster(route), {}],
    changes: [ofCluster(route, 'changes'), {}],
    readiness: [ofCluster(route, 'readiness'), { target: route.target }],
  }),
  upgrade: (route) => ({ cluster: [ofCluster(route), {}], upgrade: [ofCluster(route, 'upgrade'), { target: route.target }] }),
  picture: (route) => ({ cluster: [ofCluster(route), {}], picture: [ofCluster(route, 'picture'), {}] }),
  history: (route) => ({
    cluster: [ofCluster(route), {}],
    list: [ofCluster(route, 'epochs'), {}],
    changes: [ofCluster(route, 'changes'), {}],
    ...(route.from && route.to && { differences: [ofCluster(route, 'differences'), { from: route.from, to: route.to }] }),
  }),
  operations: (route) => ({
    cluster: [ofCluster(route), {}], list: [ofCluster(route, 'operations'), { kind: route.kind }],
  }),
  nodes: (route) => ({ cluster: [ofCluster(route), {}], list: [ofCluster(route, 'views'), {}] }),
  quorum: (route) => ({ cluster: [ofCluster(route), {}], quorum: [ofCluster(route, 'quorum'), {}] }),
  migration: (route) => ({ cluster: [ofCluster(route), {}] }),
  rehearsal: (route) => ({
    cluster: [ofCluster(route), {}],
    ...(lines(route.steps).length && { rehearsal: [ofCluster(route, 'rehearsal'), { step: lines(route.steps), release: route.release }] }),
  }),
};

const FLEET = (route) => ({ list: ['clusters', { order: 'urgency', health: route.health, state: route.state, q: route.q }] });

export function resourcesOf(route) {
  return (Object.hasOwn(VIEWS, route.view) ? VIEWS[route.view] : FLEET)(route);
}

// Views of all clusters that any state of one may change: with a thousand there is one at any time.
export function isOfFleet(route) {
  return route.view === 'sources' || route.view === 'releases';
}
