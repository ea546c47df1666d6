// npm run rooms: lines of each room of the product, which rooms it stands on, and the longest files. That nothing imports
// in circles is checked by npm run check:imports; the drawing in docs/developers/architecture.md is made of the same rooms.

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
export const LAYERS = ['domain', 'application', 'infrastructure', 'projections', 'interfaces']

/** The files of a layer: path from the root, lines, and the files of the project that it imports. */
function filesOf(layer) {
  return readdirSync(join(root, layer), { recursive: true })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => {
      const path = join(layer, name)
      const text = readFileSync(join(root, path), 'utf8')
      const imports = [...text.matchAll(/(?:from|import\() ?'(\.[^']+)'/g)]
      return {
        path,
        lines: text.split('\n').length - 1,
        imports: imports.map(([, to]) => join(dirname(path), to)),
      }
    })
}

/** The first folder below the layer; the layer itself of a file that stands in none. */
const roomOf = (path) =>
  path
    .split('/')
    .slice(0, 2)
    .join('/')
    .replace(/\/[^/]+\.ts$/, '')

/** The rooms of a layer by name: lines, files, and the rooms of the same layer that they import from. */
export function roomsOf(layer) {
  const rooms = new Map()
  for (const { path, lines, imports } of filesOf(layer)) {
    const name = roomOf(path)
    const room = rooms.get(name) ?? { lines: 0, files: 0, on: new Set() }
    rooms.set(name, room)
    room.lines += lines
    room.files += 1
    for (const to of imports.map(roomOf)) if (to !== name && to.startsWith(`${layer}/`)) room.on.add(to)
  }
  return new Map([...rooms].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** A Mermaid drawing of a layer: arrows lead to what a room stands on, without those that follow from others. */
export function drawingOf(layer) {
  const rooms = roomsOf(layer)
  const below = (name) => [...(rooms.get(name)?.on ?? [])]
  // a circle ends here: npm run check:imports names it
  const reaches = (from, to, seen = new Set()) =>
    !seen.has(from) && below(from).some((next) => next === to || reaches(next, to, seen.add(from)))
  const arrows = [...rooms.keys()].flatMap((name) =>
    below(name)
      .filter((to) => !below(name).some((other) => other !== to && reaches(other, to)))
      .sort()
      .map((to) => `  ${name.split('/')[1]} --> ${to.split('/')[1]}`),
  )
  return ['```mermaid', 'flowchart TD', ...arrows, '```'].join('\n')
}

/** The page of the architecture with the drawing of the application as its rooms are. */
export function withRooms(page) {
  return page.replace(/```mermaid\nflowchart TD\n.*?```/s, drawingOf('application'))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let total = 0
  for (const layer of LAYERS) {
    for (const [name, { lines, files, on }] of roomsOf(layer)) {
      total += lines
      const rooms = [...on].map((one) => one.split('/')[1]).sort()
      console.log(
        `${String(lines).padStart(6)} lines ${String(files).padStart(4)} files  ${name}  ${rooms.join(' ')}`,
      )
    }
  }
  console.log(`${String(total).padStart(6)} lines in all`)
  const longest = LAYERS.flatMap(filesOf).sort((a, b) => b.lines - a.lines)
  console.log(
    longest
      .slice(0, 5)
      .map(({ path, lines }) => `${lines} ${path}`)
      .join('\n'),
  )
}
