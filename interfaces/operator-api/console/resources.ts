import type { StoryKind } from '../../../application/audit/story-streams.ts'
import type { Texts } from './calls.ts'
import { keptResources } from './kept-resources.ts'
import type { Action, Resource } from './resource.ts'
import type { Row } from './values.ts'

const text = (of: unknown) => String(of ?? '')
/** Fields of a row by their names. */
const fieldsOf =
  (...names: readonly string[]) =>
  (row: Row): Texts =>
    Object.fromEntries(names.map((name) => [name, text(row[name])]))
const hasRebuild = ({ rebuild }: Row) => rebuild !== null && rebuild !== undefined
const stands =
  (...statuses: readonly string[]) =>
  ({ status }: Row) =>
    statuses.includes(text(status))
const isUnanswered = ({ answer }: Row) => answer === 'none'
const streamOf = (stream: unknown) => ({
  href: `/console/streams/${encodeURIComponent(text(stream))}`,
  label: 'Stream',
})

const storyOf = (kind: StoryKind, id: unknown) => ({
  href: `/console/stories/${kind}/${encodeURIComponent(text(id))}`,
  label: 'Story',
})

/** Counts what would be tried again, and tries it. */
const retries = (
  route: string,
  given: (row: Row) => Texts,
  when: (row: Row) => boolean = () => true,
): readonly Action[] => [
  { route, label: 'Dry run', isDry: true, given: (row) => ({ ...given(row), dry_run: 'true' }), when },
  { route, label: 'Retry', given, when },
]
const REDRIVE = 'POST /projections/{name}/redrive'
const isOfProjection = ({ kind }: Row) => kind === 'projection'

export const resources: readonly Resource[] = [
  {
    path: 'alerts',
    title: 'Alerts',
    about: 'What calls for a person, newest first.',
    list: 'GET /alerts',
    show: 'GET /alerts/{alert_id}',
    actions: [{ route: 'POST /alerts/{alert_id}/acknowledge', label: 'Acknowledge', when: stands('open') }],
  },
  {
    path: 'projections',
    title: 'Projections',
    about: 'Read models: how far each is behind the log, and what becomes of a rebuild.',
    list: 'GET /projections',
    show: 'GET /projections/{name}',
    actions: [
      { route: 'POST /projections/{name}/rebuild', label: 'Rebuild', when: (row) => !hasRebuild(row) },
      { route: 'POST /projections/{name}/switch', label: 'Switch', when: hasRebuild },
      { route: 'POST /projections/{name}/cancel', label: 'Cancel', when: hasRebuild },
      {
        route: 'POST /projections/{name}/rollback',
        label: 'Roll back',
        when: ({ retired }) => retired !== null && retired !== undefined,
      },
      { route: 'POST /projections/{name}/pause', label: 'Pause', when: ({ state }) => state !== 'paused' },
      { route: 'POST /projections/{name}/resume', label: 'Resume', when: ({ state }) => state === 'paused' },
      {
        route: REDRIVE,
        label: 'Retry dead letters',
        when: ({ parked_streams }) => Number(parked_streams) > 0,
      },
    ],
    parts: { parked: retries(REDRIVE, fieldsOf('stream')) },
  },
  {
    path: 'work',
    title: 'Work',
    about: 'What process managers have in hand: due, held, for later, and failed.',
    show: 'GET /work',
    parts: {
      failed: [
        { route: 'POST /work/redrive', label: 'Retry', given: fieldsOf('process_manager', 'kind', 'key') },
      ],
      unknown: [
        { route: 'POST /work/discard', label: 'Discard', given: fieldsOf('process_manager', 'kind') },
      ],
    },
    whole: [{ route: 'POST /work/redrive', label: 'Retry all that failed' }],
  },
  {
    path: 'dead-letters',
    title: 'Dead letters',
    about:
      'Streams that wait behind an event that a projection, a process manager or the publisher of integration events could not handle. Mend the cause first; then try them again.',
    list: 'GET /dead-letters',
    links: ({ stream, revision }) => [
      { href: `${streamOf(stream).href}?from=${text(revision)}`, label: 'What waits' },
    ],
    actions: [
      ...retries(
        REDRIVE,
        ({ reader, stream }) => ({ name: text(reader), stream: text(stream) }),
        isOfProjection,
      ),
      ...retries(
        'POST /work/redrive',
        ({ reader, stream }) => ({ process_manager: text(reader), kind: '$stream', key: text(stream) }),
        (row) => !isOfProjection(row),
      ),
    ],
  },
  {
    path: 'debits',
    title: 'Debits',
    about: 'Bank debits, newest first. Those in quarantine wait for a person.',
    list: 'GET /debits',
    show: 'GET /debits/{transaction_id}',
    story: 'debit',
    actions: [
      {
        route: 'POST /debits/{transaction_id}/release',
        label: 'Release',
        when: stands('quarantined', 'legacy_collected'),
      },
      { route: 'POST /debits/{transaction_id}/reject', label: 'Reject', when: stands('quarantined') },
    ],
    whole: [{ route: 'POST /debit-batches', label: 'Run the batch worker' }],
  },
  {
    path: 'bank-files',
    title: 'Bank files',
    links: ({ file_id }) => [
      { href: `/console/bank-files/${text(file_id)}/lines`, label: 'Lines' },
      streamOf(`bankFile-${text(file_id)}`),
    ],
    about: 'Files for the bank with their batches, and how the bank answered.',
    list: 'GET /bank-files',
    show: 'GET /bank-files/{file_id}',
    actions: [
      { route: 'POST /bank-files/{file_id}/expose-again', label: 'Send again', when: stands('uncertain') },
      {
        route: 'POST /bank-files/{file_id}/treat-as-sent',
        label: 'Treat as sent',
        when: stands('uncertain'),
      },
      { route: 'POST /bank-files/{file_id}/acknowledge', label: 'Bank took it', when: isUnanswered },
      { route: 'POST /bank-files/{file_id}/reject', label: 'Bank refused it', when: isUnanswered },
    ],
    whole: [{ route: 'POST /bank-files/look', label: 'Look into the folders now' }],
  },
  {
    path: 'bank-reports',
    title: 'Bank reports',
    about: 'Files that the bank reported with, and lines of them that a person has yet to look at.',
    list: 'GET /bank-reports',
    show: 'GET /bank-reports/{report_id}',
    actions: [{ route: 'POST /bank-reports/{report_id}/read-again', label: 'Read again' }],
    parts: {
      parked: [
        { route: 'POST /bank-reports/{report_id}/items/{line}/resolve', label: 'Resolve' },
        { route: 'POST /bank-reports/{report_id}/items/{line}/apply', label: 'Apply to a debit' },
      ],
    },
  },
  {
    path: 'reconciliations',
    title: 'Reconciliation',
    about: 'Comparisons of events, ledger, balances, credits and files, newest first.',
    list: 'GET /reconciliations',
    show: 'GET /reconciliations/{reconciliation_id}',
    whole: [{ route: 'POST /reconciliations', label: 'Compare now' }],
  },
  {
    path: 'webhooks',
    title: 'Webhooks',
    links: ({ subscription_id }) => [storyOf('webhook', subscription_id)],
    about: 'Subscriptions of all tenants whose last deliveries failed, the worst first.',
    list: 'GET /webhooks/failing',
    show: 'GET /tenants/{tenant_id}/webhooks/{subscription_id}',
    also: 'GET /tenants/{tenant_id}/webhooks/{subscription_id}/deliveries',
    alsoActions: [
      {
        route: 'POST /tenants/{tenant_id}/webhooks/{subscription_id}/resend',
        label: 'Resend',
        given: fieldsOf('event_id'),
        when: ({ test }, { status }) => test === false && status === 'active',
      },
    ],
    actions: [
      {
        route: 'POST /tenants/{tenant_id}/webhooks/{subscription_id}/resend',
        label: 'Resend',
        when: stands('active'),
      },
      {
        route: 'POST /tenants/{tenant_id}/webhooks/{subscription_id}/disable',
        label: 'Disable',
        when: stands('active'),
      },
    ],
  },
  {
    path: 'events',
    title: 'Events',
    about: 'The log, in its order. Personal fields are masked.',
    list: 'GET /events',
    links: ({ stream, event_id }) => [
      streamOf(stream),
      {
        href: `/console/proofs/${text(event_id)}`,
        label: 'Proof',
        route: 'GET /audit/proofs/{event_id}',
      },
    ],
  },
  {
    path: 'streams',
    title: 'Streams',
    about: 'The state of a stream, now or at a time or revision, and its events.',
    show: 'GET /streams/{stream}/state',
    also: 'GET /streams/{stream}',
  },
  {
    path: 'stories',
    title: 'Stories',
    about: 'What happened to a thing over all its streams, and how it stood at a time.',
    show: 'GET /stories/{kind}/{id}',
  },
  {
    path: 'audit',
    title: 'Audit',
    about: 'Signed checkpoints of the log, newest first, and the check that nothing was altered.',
    list: 'GET /audit/checkpoints',
    whole: [
      { route: 'POST /audit/verify', label: 'Verify the log' },
      { route: 'POST /audit/checkpoints', label: 'Sign a checkpoint' },
    ],
  },
  {
    path: 'proofs',
    title: 'Proofs',
    about: 'The proof that an event is in the log.',
    show: 'GET /audit/proofs/{event_id}',
    isHidden: true,
  },
  {
    path: 'pending-actions',
    title: 'Pending actions',
    about: 'What cannot be taken back, and waits for another operator than the one who asked for it.',
    list: 'GET /pending-actions',
    actions: [
      { route: 'POST /pending-actions/{action_id}/approve', label: 'Approve' },
      { route: 'POST /pending-actions/{action_id}/decline', label: 'Decline' },
    ],
  },
  {
    path: 'operators',
    title: 'Operators',
    about: 'Who may sign in here, and as what.',
    list: 'GET /operators',
    actions: [
      { route: 'POST /operators/{operator_id}/rotate', label: 'New token' },
      { route: 'POST /operators/{operator_id}/revoke', label: 'Revoke', when: stands('active') },
    ],
    whole: [{ route: 'POST /operators', label: 'Add a person' }],
  },
  ...keptResources,
]
