// What may import what. `npm run check:imports` enforces it.

const { bundled } = require('./package.json')

/** Modules outside the given folders of this project; packages and node's own modules are other rules' business. */
const outside = (...allowed) => ({
  path: '^(domain|application|infrastructure|projections|interfaces|clients|tests|bench|scripts|examples|bin)/',
  pathNot: `^(${allowed.join('|')})/`,
})

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'domain-imports-only-domain',
      comment: 'The domain is pure: it knows no port, no adapter and no interface.',
      severity: 'error',
      from: { path: '^domain/' },
      to: outside('domain'),
    },
    {
      name: 'domain-uses-only-zod',
      comment: 'Of the packages the domain uses zod alone, and none of node.',
      severity: 'error',
      from: { path: '^domain/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer', 'core'],
        pathNot: '^node_modules/zod/',
      },
    },
    {
      name: 'application-imports-domain',
      comment: 'The application reaches the outside through its ports only.',
      severity: 'error',
      from: { path: '^application/' },
      to: outside('application', 'domain'),
    },
    {
      name: 'application-uses-no-adapters-packages',
      comment:
        'Databases, servers and the like are behind ports; of the packages the application uses zod alone.',
      severity: 'error',
      from: { path: '^application/', pathNot: '^application/(queries/|banking/accounts/account-rows[.]ts$)' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer'], pathNot: '^node_modules/zod/' },
    },
    {
      name: 'read-models-build-queries',
      comment:
        'Texts of queries are built from the tables by kysely, without a connection; running them is behind a port.',
      severity: 'error',
      from: { path: '^application/queries/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer'],
        pathNot: '^node_modules/kysely/',
      },
    },
    {
      name: 'projections-import-domain-and-application',
      comment: 'Projections turn events into rows; how rows are stored is behind their runtime.',
      severity: 'error',
      from: { path: '^projections/' },
      to: outside('projections', 'application', 'domain'),
    },
    {
      name: 'infrastructure-implements-ports',
      comment:
        'Adapters know the ports they implement (the projections’ store among them), never who calls them.',
      severity: 'error',
      from: { path: '^infrastructure/' },
      to: outside('infrastructure', 'application', 'domain', 'projections/runtime'),
    },
    {
      name: 'clients-of-servers-are-loaded-where-used',
      comment: 'A start without EventStoreDB, NATS or traces does not load what is for them, which is large.',
      severity: 'error',
      from: {
        path: '^interfaces/(main|service/[^/]+)[.]ts$',
        pathNot: '^interfaces/service/nats-messaging[.]ts$',
      },
      to: {
        path: '^(infrastructure/(event-store/eventstoredb|messaging/nats)/|infrastructure/telemetry/traces[.]ts$|interfaces/service/nats-messaging[.]ts$)',
        pathNot: '/errors[.]ts$',
        dependencyTypesNot: ['dynamic-import', 'type-only'],
      },
    },
    {
      name: 'errors-of-servers-need-no-client',
      severity: 'error',
      from: {
        path: '^infrastructure/(event-store/eventstoredb/(errors|connection-string)|messaging/nats/errors)[.]ts$',
      },
      to: { path: '^node_modules/(@eventstore|nats)/' },
    },
    {
      name: 'client-stands-alone',
      comment: 'What partners install is the client alone: it has no dependencies but node.',
      severity: 'error',
      from: { path: '^clients/' },
      to: outside('clients'),
    },
    {
      name: 'client-has-no-packages',
      severity: 'error',
      from: { path: '^clients/' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'product-imports-no-tests',
      severity: 'error',
      from: { path: '^(domain|application|infrastructure|projections|interfaces)/' },
      to: { path: '^(tests|bench|scripts|examples)/' },
    },
    {
      name: 'product-uses-no-development-packages',
      comment: 'What the running service imports is installed with it, or bundled into it.',
      severity: 'error',
      from: { path: '^(domain|application|infrastructure|projections|interfaces)/' },
      to: {
        dependencyTypes: ['npm-dev'],
        dependencyTypesNot: ['type-only'],
        pathNot: `^node_modules/(@types|${bundled.join('|')})/`,
      },
    },
    {
      name: 'no-unknown-imports',
      comment: 'Every import resolves, to a file or to a package that package.json names.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-undeclared-packages',
      severity: 'error',
      from: { path: '^(domain|application|infrastructure|projections|interfaces)/' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-cycles-of-folders',
      comment: 'Whoever reads one room knows which it stands on.',
      severity: 'error',
      scope: 'folder',
      from: {},
      to: { circular: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    // imports of types count as well
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
}
