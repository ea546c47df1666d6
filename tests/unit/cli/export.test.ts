import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { signedNote, signerOf, verifierKey } from '../../../application/audit/checkpoint-note.ts'
import { inclusionProof, leafHash, rootOf } from '../../../application/audit/merkle.ts'
import { grown, nodesOf } from '../../../application/audit/tree-tiles.ts'
import { writeExport } from '../../../interfaces/cli/export-events.ts'
import type { ExportedEvent } from '../../../interfaces/cli/export-files.ts'
import { cli, expectRefused } from '../../support/cli.ts'

const SIZE = 300
const signer = signerOf('compstream/x', Buffer.alloc(32, 7))
const key = verifierKey(signer)
const leaves = Array.from({ length: SIZE }, (_, n) => leafHash(`event ${n}`))
const tiles = new Map(
  grown(0, new Map(), leaves).map(({ level, index, hashes }) => [`${level}/${index}`, hashes]),
)
const nodes = nodesOf(async ({ level, index }) => tiles.get(`${level}/${index}`)!)

async function eventAt(index: number, sentence = `Event ${index}.`): Promise<ExportedEvent> {
  const path = await inclusionProof(index, SIZE, nodes)
  return {
    position: String(10 * index + 10),
    stream: `policy-${index}`,
    event_id: `event-${index}`,
    type: 'PolicyIssued',
    recorded_at: '2026-03-31T12:00:00.000Z',
    metadata: { actor: { type: 'operator', id: 'ann' } },
    sentence,
    leaf_hash: leaves[index]!.toString('base64'),
    proof: { leaf_index: index, path: path.map((hash) => hash.toString('base64')) },
  }
}

describe('an export of events', () => {
  let place: string
  beforeEach(async () => {
    place = await mkdtemp(join(tmpdir(), 'compstream-export-'))
  })
  afterEach(() => rm(place, { recursive: true }))

  const file = (name: string) => join(place, 'export', name)

  /** Writes an export of pages of events, by default of all. */
  async function written(pages: AsyncIterable<ExportedEvent[]> | Iterable<ExportedEvent[]>) {
    const checkpoint = signedNote(
      { origin: signer.name, size: SIZE, root: await rootOf(SIZE, nodes) },
      signer,
    )
    async function* all() {
      yield* pages
    }
    return writeExport(join(place, 'export'), all(), {
      describe: (contents) => ({
        made_at: '2026-04-01T08:00:00.000Z',
        made_by: { operator_id: 'ann', role: 'auditor' },
        command: 'events list',
        of: {},
        filters: { type: 'PolicyIssued' },
        ...contents,
        checkpoint,
        key,
      }),
      report: () => undefined,
    })
  }
  const check = (trusted = key) => cli(['--json', 'audit', 'check', join(place, 'export'), '--key', trusted])

  /** Changes a file, and the manifest with it, as somebody does who wants it to go unnoticed. */
  async function forge(name: string, change: (text: string) => string): Promise<void> {
    const text = change(await readFile(file(name), 'utf8'))
    await writeFile(file(name), text)
    const manifest = JSON.parse(await readFile(file('manifest.json'), 'utf8'))
    const sha256 = createHash('sha256').update(text).digest('hex')
    manifest.files[name] = { bytes: Buffer.byteLength(text), sha256 }
    await writeFile(file('manifest.json'), JSON.stringify(manifest))
  }

  test('is proven to who has the verifier key alone, and says whether it is the whole log', async () => {
    const { manifest_sha256 } = await written([
      [await eventAt(3)],
      [],
      [await eventAt(255), await eventAt(299)],
    ])
    expect((await check()).json()).toEqual({
      proven: true,
      kind: 'export',
      events: 3,
      first_position: '40',
      last_position: '3000',
      is_whole_log: false,
      size: SIZE,
      signed_by: 'compstream/x',
      witnesses: [],
      made_at: '2026-04-01T08:00:00.000Z',
      made_by: { operator_id: 'ann', role: 'auditor' },
      command: 'events list',
      of: {},
      filters: { type: 'PolicyIssued' },
      manifest_sha256,
    })
    const bytes = await readFile(file('manifest.json'))
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(manifest_sha256)
    const other = verifierKey(signerOf('compstream/x', Buffer.alloc(32, 8)))
    expectRefused(await check(other), /No key that is trusted/)
  })

  test('of all events is the whole log, and one of none is proven as well', async () => {
    await written([await Promise.all(leaves.map((_, index) => eventAt(index)))])
    expect((await check()).json()).toMatchObject({ events: SIZE, is_whole_log: true })
    await rm(join(place, 'export'), { recursive: true })
    await written([])
    expect((await check()).json()).toMatchObject({ events: 0, first_position: null, last_position: null })
  })

  test('has a table of what happened that no spreadsheet takes for formulas', async () => {
    const sentences = [
      '=1+1',
      '+1',
      '-1',
      '@SUM(A1)',
      ' =1',
      '\t=1',
      'He said "no",\nand left.',
      'Zoë\u2028.',
    ]
    await written([await Promise.all(sentences.map((sentence, index) => eventAt(index, sentence)))])
    const [head, ...rows] = parse(await readFile(file('events.csv'), 'utf8')) as string[][]
    expect(head).toEqual(['position', 'recorded_at', 'actor', 'type', 'stream', 'sentence'])
    const first = ['10', '2026-03-31T12:00:00.000Z', 'operator/ann', 'PolicyIssued', 'policy-0', "'=1+1"]
    expect(rows[0]).toEqual(first)
    expect(rows.map((cells) => cells[5])).toEqual([
      ...["'=1+1", "'+1", "'-1", "'@SUM(A1)", "' =1", "'\t=1"],
      ...['He said "no",\nand left.', 'Zoë\u2028.'],
    ])
    expect((await check()).json()).toMatchObject({ proven: true, events: sentences.length })
  })

  test.each(['events.jsonl', 'events.csv'])('with a changed byte is refused by name: %s', async (name) => {
    await written([[await eventAt(1), await eventAt(2)]])
    const bytes = await readFile(file(name))
    bytes[bytes.length - 5]! ^= 1
    await writeFile(file(name), bytes)
    expectRefused(await check(), new RegExp(`${name} is not the file of the manifest`))
    await rm(file(name))
    expectRefused(await check(), new RegExp(`${name} cannot be read`))
  })

  test.each<readonly [what: string, name: string, change: (text: string) => string, why: RegExp]>([
    [
      'of another leaf',
      'events.jsonl',
      (text) => text.replace(/"leaf_hash":"../, '"leaf_hash":"AA'),
      /line 1: event event-1 is not at index 1 /,
    ],
    ['that is there twice', 'events.jsonl', (text) => `${text}${text}`, /line 3: the event is out of order/],
    [
      'that is left out',
      'events.jsonl',
      (text) => text.slice(text.indexOf('\n') + 1),
      /manifest.json counts other events/,
    ],
    [
      'that says something else in the table',
      'events.csv',
      (text) => text.replace('Event 1.', 'Event 7.'),
      /events.csv says something else/,
    ],
    ['that cannot be read', 'events.jsonl', (text) => text.replace('{', ''), /line 1: it holds no event/],
  ])('with an event %s is refused, though the manifest has its hash', async (_, name, change, why) => {
    await written([[await eventAt(1), await eventAt(2)]])
    await forge(name, change)
    expectRefused(await check(), why)
  })

  test('is not checked by a manifest that is none, or that names further files', async () => {
    await written([])
    const manifest = JSON.parse(await readFile(file('manifest.json'), 'utf8'))
    const files = { ...manifest.files, '../secret': { bytes: 1, sha256: '' } }
    for (const told of [{}, { ...manifest, files }]) {
      await writeFile(file('manifest.json'), JSON.stringify(told))
      expectRefused(await check(), /manifest.json is no manifest of an export/)
    }
  })

  test('is never written over files, and leaves nothing when it fails', async () => {
    await mkdir(join(place, 'export'))
    await writeFile(file('events.csv'), 'mine')
    await expect(written([])).rejects.toThrow(/is not empty/)
    expect(await readFile(file('events.csv'), 'utf8')).toBe('mine')
    await rm(file('events.csv'))

    async function* failing() {
      yield [await eventAt(1)]
      // somebody else was there meanwhile
      await writeFile(file('events.csv'), 'theirs')
    }
    await expect(written(failing())).rejects.toThrow(/cannot be written: ENOTEMPTY/)
    expect(await readdir(place)).toEqual(['export'])
    expect(await readdir(join(place, 'export'))).toEqual(['events.csv'])
  })
})
