import type { Draw } from '../providers/draw.ts'

type Loose = Record<string, unknown>

/** What can happen to the lines of a session. */
const variations = {
  'lines are missing': (lines, draw) => lines.filter(() => !draw.chance(0.1)),
  'lines come twice': (lines, draw) => lines.flatMap((line) => (draw.chance(0.1) ? [line, line] : [line])),
  'lines are swapped': (lines, draw) => {
    const result = [...lines]
    for (let swap = draw.integer(1, 6); swap > 0; swap -= 1) {
      const [left, right] = [draw.integer(0, lines.length - 1), draw.integer(0, lines.length - 1)]
      result[left] = lines[right] ?? ''
      result[right] = lines[left] ?? ''
    }
    return result
  },
  'lines are cut': (lines, draw) =>
    lines.map((line) => (draw.chance(0.06) ? line.slice(0, draw.integer(0, line.length)) : line)),
  'bytes are garbled': (lines, draw) => lines.map((line) => (draw.chance(0.08) ? garbled(line, draw) : line)),
  'the session is cut': (lines, draw) => lines.slice(0, draw.integer(1, lines.length)),
  'types are unknown': (lines, draw) =>
    changed(lines, draw, (value) => ({ ...value, [typeName(value)]: `hologram-${draw.integer(1, 9)}` })),
  'ids come twice': (lines, draw) => {
    const ids = lines.flatMap((line) => idOf(line) ?? [])
    return changed(lines, draw, (value) => ({ ...value, [idName(value)]: draw.pick([...ids, 'x']) }))
  },
  'members have other types': (lines, draw) => changed(lines, draw, (value) => confused(value, draw) as Loose),
  'values are huge': (lines, draw) => changed(lines, draw, (value) => enlarged(value, draw) as Loose, 0.03),
  'values are wide': (lines, draw) => changed(lines, draw, (value) => widened(value, draw) as Loose, 0.05),
  'values are deep': (lines, draw) =>
    changed(lines, draw, (value) => ({ ...value, deep: nested(draw.pick([10, 46, 47, 48, 60, 3000])) }), 0.05),
  'branches begin': (lines, draw) => {
    const result = [...lines]
    for (let branch = draw.integer(1, 3); branch > 0; branch -= 1) result.push(...branchOf(lines, draw))
    return result
  },
  'the end is missing': (lines, draw) => lines.slice(0, -draw.integer(1, Math.max(1, Math.floor(lines.length / 2)))),
} satisfies Record<string, (lines: readonly string[], draw: Draw) => string[]>

export type Variation = keyof typeof variations

export function vary(lines: readonly string[], draw: Draw): { lines: string[]; names: Variation[] } {
  const all = Object.keys(variations) as Variation[]
  const names = draw.chance(0.7) ? [draw.pick(all)] : [draw.pick(all), draw.pick(all)]
  const result = names.reduce<string[]>((before, name) => variations[name](before, draw), [...lines])
  return { lines: result.length === 0 ? [...lines] : result, names }
}

function changed(lines: readonly string[], draw: Draw, change: (value: Loose) => Loose, chance = 0.1): string[] {
  return lines.map((line) => {
    const value = draw.chance(chance) ? parsed(line) : undefined
    // A row of a database has its data inside.
    if (!value) return line
    const { data } = value
    if ('table' in value && isLoose(data)) return JSON.stringify({ ...value, data: change(data) })
    return JSON.stringify(
      isLoose(value['payload']) && draw.chance(0.7) ? { ...value, payload: change(value['payload']) } : change(value),
    )
  })
}

function garbled(line: string, draw: Draw): string {
  const at = draw.integer(0, line.length)
  const noise = draw.pick(['\u0000', '"', '{', '}', '\\', '[[', ',', '\ud800', 'null', '\n'])
  return line.slice(0, at) + noise + line.slice(at + draw.integer(0, 3))
}

/** Another value in the place of one that is somewhere inside. */
function confused(value: unknown, draw: Draw): unknown {
  if (draw.chance(0.15))
    return draw.pick<unknown>([null, 7, -1e308, true, '', 'text', [], {}, [null], { type: 'text' }])
  if (Array.isArray(value))
    return value.map((item, index) => (index === 0 || draw.chance(0.2) ? confused(item, draw) : item))
  if (!isLoose(value)) return value
  const name = draw.pick([...Object.keys(value), ''])
  return name in value ? { ...value, [name]: confused(value[name], draw) } : value
}

function enlarged(value: unknown, draw: Draw): unknown {
  if (typeof value === 'string') return value + 'long '.repeat(draw.pick([300, 40_000, 100_000]))
  if (Array.isArray(value)) return value.map((item, index) => (index === 0 ? enlarged(item, draw) : item))
  if (!isLoose(value)) return value
  const names = [
    'message',
    'payload',
    'content',
    'text',
    'thinking',
    'data',
    'output',
    'arguments',
    'state',
    'input',
    'result',
  ]
  const name = names.find(
    (each) => each in value && (isLoose(value[each]) || Array.isArray(value[each]) || typeof value[each] === 'string'),
  )
  return name === undefined ? value : { ...value, [name]: enlarged(value[name], draw) }
}

/** Many small values, which no store can move out of a line. */
function widened(value: unknown, draw: Draw): unknown {
  if (Array.isArray(value)) {
    const [first] = value as unknown[]
    const items = typeof first === 'object' || value.length === 0 ? manyBlocks(draw) : manyNumbers(draw)
    return [...(value as unknown[]), ...items]
  }
  if (!isLoose(value)) return typeof value === 'string' && draw.chance(0.5) ? manyBlocks(draw) : value
  const names = Object.keys(value).filter((name) => typeof value[name] === 'object' && value[name] !== null)
  if (names.length === 0 || draw.chance(0.2)) return { ...value, many: manyNumbers(draw) }
  const name = draw.pick(names)
  return { ...value, [name]: widened(value[name], draw) }
}

function manyBlocks(draw: Draw): unknown[] {
  const count = draw.pick([100, 700, 2000])
  return Array.from({ length: count }, (_, index) => ({ type: 'text', text: `${index % 5} ${'word '.repeat(60)}` }))
}

function manyNumbers(draw: Draw): unknown[] {
  return Array.from({ length: draw.pick([1000, 60_000]) }, (_, index) => index)
}

/** A second message in the place of one, with an id of its own. */
function branchOf(lines: readonly string[], draw: Draw): string[] {
  const values = lines.map((line) => parsed(line))
  const places = values.flatMap((value, place) => (value && idOf(lines[place] ?? '') !== undefined ? [place] : []))
  const chosen = values[places[draw.integer(0, places.length - 1)] ?? -1]
  if (!chosen) return []
  return [JSON.stringify({ ...chosen, [idName(chosen)]: `branch-${draw.integer(1, 1e9)}` })]
}

function nested(levels: number): unknown {
  return JSON.parse('['.repeat(levels) + ']'.repeat(levels))
}

function typeName(value: Loose): string {
  return 'type' in value || !('role' in value) ? 'type' : 'role'
}

function idName(value: Loose): string {
  return 'uuid' in value ? 'uuid' : 'id'
}

function idOf(line: string): string | undefined {
  const value = parsed(line)
  const id = value?.[value && idName(value)]
  return typeof id === 'string' ? id : undefined
}

function parsed(line: string): Loose | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isLoose(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isLoose(value: unknown): value is Loose {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
