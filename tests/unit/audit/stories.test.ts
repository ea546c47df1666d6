import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { causationGraph } from '../../../application/audit/causation-graph.ts'
import { differences } from '../../../application/audit/differences.ts'
import { hasSentence, sentenceOf } from '../../../application/audit/sentences.ts'
import { STORY_AGGREGATES } from '../../../application/audit/story-streams.ts'
import { EventRegistry } from '../../../application/commands/event-registry.ts'
import { BankDebitGated, BankDebitReleased } from '../../../domain/banking/debits/bank-debit-events.ts'
import { aggregates } from '../../../domain/catalogue.ts'
import { OperatorActed } from '../../../domain/operations/operator-action.ts'

const types = STORY_AGGREGATES.flatMap(({ events }) => events)
const by = (type: 'operator' | 'payer' | 'system', id: string) => ({ metadata: { actor: { type, id } } })
const leg_id = 'a'.repeat(24)
const at = '2026-01-31T12:00:00.000Z'

describe('a sentence', () => {
  test('is there for every event that may stand in a story', () => {
    expect(types.map(({ name }) => name).filter((name) => !hasSentence(name))).toEqual([])
  })

  test('of any stored event is whole, and holds nothing sealed', () => {
    const { metadata, samples } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../golden/events.json'), 'utf8'),
    ) as { metadata: object; samples: { type: string; version: number; data: unknown }[] }
    const registry = new EventRegistry(aggregates)
    const names = new Set(types.map(({ name }) => name))
    for (const { type, version, data } of samples.filter((one) => names.has(one.type))) {
      const sentence = sentenceOf(
        registry.decode({
          position: 1n,
          stream: 'golden-1',
          revision: 0,
          eventId: '00000000-0000-8000-8000-000000000000',
          type,
          data: JSON.stringify(data),
          metadata: JSON.stringify({ ...metadata, schema_version: version }),
        }),
      )
      expect([type, sentence]).toEqual([type, expect.stringMatching(/^[A-Z$\d].{8,400}\.$/)])
      expect([type, sentence]).toEqual([
        type,
        expect.not.stringMatching(/undefined|null|\[object|NaN|sld1\./),
      ])
    }
  })

  test('says who did it and why', () => {
    const released = {
      ...BankDebitReleased.of({ leg_id, note: 'Checked by phone.', at }),
      ...by('operator', 'jane'),
    }
    const gated = (status: 'quarantined' | 'legacy_collected') =>
      BankDebitGated.of({ leg_id, gate: 'anomaly', status, reason: 'amount_unusual', at })
    expect(sentenceOf(released, gated('quarantined'))).toBe(
      'The debit was released from quarantine by operator jane because: Checked by phone.',
    )
    expect(sentenceOf(released, gated('legacy_collected'))).toBe(
      'The debit was released by operator jane because: Checked by phone.',
    )
    expect(sentenceOf({ ...gated('quarantined'), ...by('system', 'batch-worker') })).toBe(
      'The debit was put into quarantine at the gate anomaly because: amount unusual.',
    )
  })

  test('of a type without one is its name in words', () => {
    const revealed = OperatorActed.of({ action: 'reveal', target: 'person/1', details: { reason: 'Asked.' } })
    expect(sentenceOf({ ...revealed, ...by('operator', 'kim') })).toBe(
      'The action reveal was asked for by operator kim on person/1 because: Asked.',
    )
    expect(sentenceOf({ type: 'MoonPhaseChanged', data: {}, ...by('operator', 'operator') })).toBe(
      'Moon phase changed by the operator.',
    )
  })
})

describe('the difference between two states', () => {
  test('is told value by value, and of a sensitive value only that there is one', () => {
    const before = { rates: [{ rate: '1' }, { rate: '2' }], fein: 'one', same: { of: 1 }, gone: true }
    const after = { rates: [{ rate: '1' }, { rate: '3' }, { rate: '4' }], fein: 'two', same: { of: 1 } }
    expect(differences(before, after, ['one', 'two'])).toEqual([
      { path: 'rates[1].rate', before: '2', after: '3' },
      { path: 'rates[2]', before: null, after: { rate: '4' } },
      { path: 'fein', before: '•••', after: '•••' },
      { path: 'gone', before: true, after: null },
    ])
    expect(differences(null, { name: 'A' }, [])).toEqual([{ path: '', before: null, after: { name: 'A' } }])
  })
})

describe('the graph of what caused what', () => {
  test('has a box for each event and an arrow from each cause, whatever their sentences say', () => {
    const event = (event_id: string, caused_by: string | null, sentence: string) => ({
      event_id,
      caused_by,
      sentence,
      recorded_at: at,
      metadata: { correlation_id: 'request-1' },
    })
    const graph = causationGraph([
      event('one', null, 'Work "began" <b>here</b>;\n now.'),
      event('two', 'one', 'Work went on.'),
      event('three', 'elsewhere', 'Work ended.'),
    ])
    expect(graph.split('\n')).toEqual([
      'flowchart TD',
      `  e0["${at} Work #34;began#34; #60;b#62;here#60;/b#62;#59; now."]`,
      `  e1["${at} Work went on."]`,
      `  e2["${at} Work ended."]`,
      '  c0(["request request-1"])',
      '  c0 --> e0',
      '  e0 --> e1',
      '  c1(["event elsewhere"])',
      '  c1 --> e2',
    ])
  })
})
