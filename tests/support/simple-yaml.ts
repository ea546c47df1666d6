/** What {@link parseSimpleYaml} reads: scalars stay the text that they are. */
export type Yaml = string | null | readonly Yaml[] | { readonly [key: string]: Yaml }

interface Line {
  readonly number: number
  readonly indent: number
  readonly text: string
}

/**
 * Reads the part of YAML that the project's own files use: block mappings and lists, lists in brackets, plain and
 * double-quoted scalars, comments, anchors (`&name`) and aliases (`*name`), and merges (`<<: *name`). All scalars are
 * texts, an absent one is null.
 * @throws Error with the line's number for everything else, so that nothing is read as what it is not.
 */
export function parseSimpleYaml(source: string): Yaml {
  const lines: Line[] = source
    .split('\n')
    .map((raw, index) => ({ number: index + 1, indent: raw.search(/\S/), text: withoutComment(raw).trim() }))
    .filter(({ text }) => text !== '')
  const reader = new Reader(lines)
  const value = reader.block(0)
  if (reader.next) fail(reader.next, 'is not indented as expected')
  return value
}

class Reader {
  readonly #lines: readonly Line[]
  readonly #anchors = new Map<string, Yaml>()
  #at = 0

  constructor(lines: readonly Line[]) {
    this.#lines = lines
  }

  get next(): Line | undefined {
    return this.#lines[this.#at]
  }

  /** The mapping or list whose lines have an indentation. */
  block(indent: number): Yaml {
    const first = this.next
    if (!first) return null
    return first.text.startsWith('- ') ? this.#list(indent) : this.#mapping(indent)
  }

  #list(indent: number): Yaml {
    const items: Yaml[] = []
    for (let line = this.next; line?.indent === indent; line = this.next) {
      if (!line.text.startsWith('- ')) fail(line, 'is no item of the list')
      this.#at += 1
      items.push(this.#scalar(line.text.slice(2).trim(), line))
    }
    return items
  }

  #mapping(indent: number): Yaml {
    const own = new Map<string, Yaml>()
    let merged: Yaml = {}
    for (let line = this.next; line?.indent === indent; line = this.next) {
      const [, key, rest = ''] =
        /^([\w.<-]+):(?:\s+(.*))?$/.exec(line.text) ?? fail(line, 'is no key with a value')
      const [, anchor, inline = ''] = /^(?:&(\S+)\s*)?(.*)$/.exec(rest)!
      this.#at += 1
      if (own.has(key!)) fail(line, `repeats ${key}`)
      const deeper = this.next !== undefined && this.next.indent > indent
      if (inline !== '' && deeper) fail(line, 'has a value, and lines that belong to it')
      const value =
        inline === '' ? (deeper ? this.block(this.next!.indent) : null) : this.#scalar(inline, line)
      if (anchor) this.#anchors.set(anchor, value)
      if (key === '<<') merged = isMapping(value) ? value : fail(line, 'merges what is no mapping')
      else own.set(key!, value)
    }
    return { ...(merged as object), ...Object.fromEntries(own) }
  }

  #scalar(text: string, line: Line): Yaml {
    if (text.startsWith('*')) return this.#anchors.get(text.slice(1)) ?? fail(line, 'names an unknown anchor')
    if (text.startsWith('[')) {
      if (!text.endsWith(']')) fail(line, 'does not end its list')
      // commas in quotes are part of the item
      const items = text.slice(1, -1).match(/"(?:[^"\\]|\\.)*"|[^,\s][^,]*/g) ?? []
      return items.map((item) => this.#scalar(item.trim(), line))
    }
    if (text.startsWith('"')) return JSON.parse(text) as string
    if (/^['{|>&!%@`]/.test(text) || /: |:$/.test(text)) fail(line, 'is beyond what is read here')
    return text
  }
}

function isMapping(value: Yaml): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function withoutComment(line: string): string {
  return /^(?:"(?:[^"\\]|\\.)*"|[^"#]|(?<=\S)#)*/.exec(line)![0]
}

function fail(line: Line, why: string): never {
  throw new Error(`line ${line.number} ${why}: ${line.text}`)
}
