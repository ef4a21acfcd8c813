import { checksum, entryTypes, recordTypes } from '@tapetree/session/format'
import type { Chance } from './chance.ts'
import { nastyNames, nastyNumbers, nastyValue, rawNumber, withRawNumbers } from './nasty.ts'

type Holder = Record<string, unknown>

/** Changes members of a line, and mostly seals it again: so that what is wrong is what the line says, not its checksum. */
export function mutateLine(text: string, ids: readonly string[], chance: Chance): string {
  const line = parse(text)
  if (!line) return text
  const change = chance.of(changes)
  change(line, ids, chance)
  return chance.is(0.85) ? reseal(line) : withRawNumbers(JSON.stringify(line))
}

/** A line with these members: with a right checksum if it has a seq, as a plain line if not. */
export function reseal(line: Holder): string {
  const { crc: _, ...members } = line
  const open = withRawNumbers(JSON.stringify(members)).slice(0, -1)
  return 'seq' in members ? sealText(open) : `${open}}`
}

/** Closes a line, given without its last bracket, with a right checksum. */
export function sealText(open: string): string {
  return `${open},"crc":"${checksum(open)}"}`
}

type Change = (line: Holder, ids: readonly string[], chance: Chance) => void

const changeMember: Change = (line, ids, chance) => {
  const { holder, key } = somePlace(line, chance)
  if (chance.is(0.2)) delete holder[key]
  else set(holder, key, nastyValue(chance, ids))
}

const addMember: Change = (line, ids, chance) => {
  const { holder } = somePlace(line, chance)
  set(
    holder,
    chance.of([...nastyNames, 'critical', 'blobs', 'cause', 'parent_id', 'seq', 'crc']),
    nastyValue(chance, ids),
  )
}

const renameMember: Change = (line, _ids, chance) => {
  const { holder, key } = somePlace(line, chance)
  const value = holder[key]
  delete holder[key]
  set(holder, chance.of(nastyNames), value)
}

const changeParent: Change = (line, ids, chance) => {
  line['parent_id'] = chance.of([...ids, line['id'], 'phantom', null])
}

const changeId: Change = (line, ids, chance) => {
  line['id'] = chance.of([...ids, ...nastyNames, 'gap-3', 'a'.repeat(65)])
}

const changeType: Change = (line, _ids, chance) => {
  line['type'] = chance.of([...types, ...nastyNames])
  if (chance.is(0.3)) line['critical'] = true
}

const changeSeq: Change = (line, _ids, chance) => {
  const seq = Number(line['seq'])
  line['seq'] = chance.of([seq + 1, seq - 1, seq + 5, String(seq), rawNumber(chance.of(nastyNumbers))])
}

const changes = [
  changeMember,
  changeMember,
  changeMember,
  addMember,
  renameMember,
  changeParent,
  changeId,
  changeType,
  changeSeq,
]

const types = ['session', ...Object.keys(entryTypes), ...Object.keys(recordTypes), 'thinking_level_change', 'brand_new']

function parse(text: string): Holder | undefined {
  try {
    const line: unknown = JSON.parse(text)
    return typeof line === 'object' && line !== null && !Array.isArray(line) ? (line as Holder) : undefined
  } catch {
    return undefined // an earlier mutation broke it; it stays as it is
  }
}

/** A member anywhere in the line, the deeper ones too. */
function somePlace(line: Holder, chance: Chance): { holder: Holder; key: string } {
  let holder = line
  for (;;) {
    const key = chance.of(Object.keys(holder)) ?? 'nothing'
    const inner = holder[key]
    const canGoOn = typeof inner === 'object' && inner !== null && Object.keys(inner).length > 0
    if (!canGoOn || chance.is(0.25)) return { holder, key }
    holder = inner as Holder
  }
}

function set(holder: Holder, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true })
}
