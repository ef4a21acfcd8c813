// The format page is written by hand. These tests fail if it and the code differ.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseSync, Visitor, type ESTree } from 'rolldown/utils'
import { snakeCase } from '../util/json.ts'
import { parseLine } from './parse-line.ts'

const page = readFileSync(new URL('../../../../docs/reference/session-format.md', import.meta.url), 'utf8')

test('the page has a section for every type that the codec knows, and no other', () => {
  expect(new Set(sectionsOf(page).keys())).toEqual(new Set(payloadsOfCodec().keys()))
})

test('the section of a type has a row for each of its members', () => {
  const sections = sectionsOf(page)
  for (const [type, members] of payloadsOfCodec()) {
    const rows = rowsOf(sections.get(type) ?? '')
    expect({ type, missing: members.filter((member) => !rows.includes(member)) }).toEqual({ type, missing: [] })
  }
})

test('every member that the codec renames and every member of the types is named on the page', () => {
  const named = new Set(Array.from(page.matchAll(/`([a-z0-9_]+)`/g), ([, name]) => name))
  const members = [...membersOfShapes(), ...membersOfTypes()].map(snakeCase)
  expect(members.filter((member) => !named.has(member) && !onlyInApi.has(member))).toEqual([])
})

test('every row of the page is a member that the code knows', () => {
  const known = new Set([...membersOfShapes(), ...membersOfTypes(), ...payloadsOfCodec().keys()].map(snakeCase))
  const rows = rowsOf(page.slice(0, page.indexOf('\n## Blobs'))).filter((row) => !onlyOnDisk.has(row))
  expect(rows.filter((row) => !known.has(row))).toEqual([])
})

test('the loader accepts every example line, and its checksum is valid', () => {
  const examples = Array.from(page.matchAll(/^```jsonl\n([^]*?)^```$/gm), ([, block = '']) => block).flatMap((block) =>
    block.split('\n').filter(Boolean),
  )
  expect(examples.length).toBeGreaterThan(10)
  for (const example of examples) {
    const parsed = parseLine(new TextEncoder().encode(example))
    expect({ example, type: parsed.type, sealed: parsed.type === 'line' && parsed.sealed }).toEqual({
      example,
      type: 'line',
      sealed: example.startsWith('{"seq":'),
    })
  }
})

/** Members that exist only in the API: they hold data that cannot be decoded. */
const onlyInApi = new Set(['unknown', 'unknown_record', 'line'])
/** Members that the codec handles by name, and the kinds of image sources. */
const onlyOnDisk = new Set(['crc', 'critical', 'base64', 'url', 'blob'])

/** By type: the text under the heading "### `type`". */
function sectionsOf(text: string): Map<string, string> {
  const sections = text.split(/^(?=#{2,3} )/m).flatMap((section): [string, string][] => {
    const type = /^### `([a-z_]+)`/.exec(section)?.[1]
    return type === undefined ? [] : [[type, section]]
  })
  return new Map(sections)
}

function rowsOf(text: string): string[] {
  return Array.from(text.matchAll(/^\| `([a-z0-9_]+)` +\|/gm), ([, name = '']) => name)
}

/** The codec's tables are private, so this reads them from its source: by type, the members of the payload on disk. */
function payloadsOfCodec(): Map<string, string[]> {
  const shapes = new Map<string, ESTree.Node>()
  const payloads = new Map<string, string[]>()
  const membersIn = (value: ESTree.Node): string[] => {
    const shape = value.type === 'Identifier' ? shapes.get(value.name) : value
    const [table] = shape?.type === 'CallExpression' ? shape.arguments : []
    return table ? keysOf(table).map(([name]) => snakeCase(name)) : []
  }
  visitSource('codec.ts', {
    VariableDeclarator: ({ id, init }) => {
      if (id.type !== 'Identifier' || !init) return
      shapes.set(id.name, init)
      if (id.name !== 'payloadShapes') return
      for (const [type, value] of keysOf(init)) payloads.set(type, membersIn(value))
    },
  })
  return payloads
}

function membersOfShapes(): string[] {
  const members: string[] = []
  visitSource('codec.ts', {
    CallExpression: ({ callee, arguments: [table] }) => {
      if (sourceName(callee) === 'shape' && table) members.push(...keysOf(table).map(([name]) => name))
    },
  })
  return members
}

function membersOfTypes(): string[] {
  const members: string[] = []
  for (const file of ['message.ts', 'entry.ts', 'record.ts']) {
    visitSource(file, {
      TSPropertySignature: ({ key }) => {
        if (key.type === 'Identifier') members.push(key.name)
      },
    })
  }
  return members
}

function keysOf(table: ESTree.Node): [string, ESTree.Node][] {
  if (table.type !== 'ObjectExpression') return []
  return table.properties.flatMap((property): [string, ESTree.Node][] => {
    const name = property.type === 'Property' ? sourceName(property.key) : undefined
    return name === undefined || property.type !== 'Property' ? [] : [[name, property.value]]
  })
}

function sourceName(node: ESTree.Node): string | undefined {
  return node.type === 'Identifier' ? node.name : undefined
}

function visitSource(file: string, visitor: ConstructorParameters<typeof Visitor>[0]): void {
  const { program } = parseSync(file, readFileSync(new URL(file, import.meta.url), 'utf8'))
  new Visitor(visitor).visit(program)
}
