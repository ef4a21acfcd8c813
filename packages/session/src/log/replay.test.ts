import { describe, expect, test } from 'vitest'
import { maxReadLineBytes, type DiskLine } from '../line/line.ts'
import { Reading } from './replay.ts'
import { sealLine } from '../line/seal-line.ts'
import { SessionState } from '../state/session-state.ts'
import { contextPathTo, pathTo } from '../state/tree.ts'

const encoder = new TextEncoder()

const header: DiskLine = { type: 'session', id: 's', version: 1 }
const writer: DiskLine = { type: 'writer', id: 'w', writer: { term: 1, format: 1 } }
const said = (id: string, parent: string | null): DiskLine => ({
  type: 'message',
  id,
  parent_id: parent,
  message: { role: 'user', content: [] },
})
const leaf = (target: unknown): DiskLine => ({ type: 'leaf', id: 'l', leaf: { target_id: target } })

/** Lines of a file, numbered from 1. */
function sealed(...lines: DiskLine[]): string[] {
  return lines.map((line, index) => sealLine(line, index + 1).text)
}

function read(texts: readonly string[]): { state: SessionState; accepted: string[]; damage: string[] } {
  const state = new SessionState({ isWhole: true })
  const accepted: string[] = []
  const reading = new Reading(state, ({ seq, line }) => accepted.push(`${seq} ${line.id}`))
  let at = 0
  for (const text of texts) {
    const bytes = encoder.encode(text)
    const next = at + bytes.length + 1
    reading.take({ at, size: bytes.length, next, bytes })
    at = next
  }
  reading.finish()
  return { state, accepted, damage: state.damage.map(({ seq, count, reason }) => `${seq}+${count}: ${reason}`) }
}

function path(state: SessionState): string[] {
  return pathTo(state.leaf).map(({ id, type }) => (type === 'gap' ? `gap ${id}` : id))
}

const broken = (text: string): string => text.replace(/.{12}$/, '')

describe('reading', () => {
  test('accepts lines in order and reports nothing', () => {
    const { accepted, damage, state } = read(sealed(header, writer, said('a', null), said('b', 'a')))
    expect(accepted).toEqual(['1 s', '2 w', '3 a', '4 b'])
    expect([damage, path(state), state.nextSeq]).toEqual([[], ['a', 'b'], 5])
  })

  test('replaces a damaged entry by a gap with its id and parent', () => {
    const lines = sealed(header, said('a', null), said('b', 'a'), said('c', 'b'))
    const { damage, state } = read(lines.with(2, broken(lines[2] as string)))
    expect(damage).toEqual(['3+1: checksum is missing'])
    expect(path(state)).toEqual(['a', 'gap b', 'c'])
    expect(read(lines.with(3, broken(lines[3] as string))).state.inbox.hold?.reason).toBe('lines of the log were lost')
  })

  test('counts missing lines by seq, and reports stray lines that replaced nothing', () => {
    const lines = sealed(header, said('a', null), said('b', 'a'), said('c', 'b'))
    expect(read(lines.toSpliced(1, 2)).damage).toEqual([
      '2+2: lines are missing',
      '4+0: entry b is referenced but missing',
    ])
    expect(read(lines.toSpliced(2, 0, 'junk of some length')).damage).toEqual(['2+0: not valid JSON'])
    expect(read(lines.toSpliced(2, 0, '', ' \t\r')).damage).toEqual([])
  })

  test('keeps, reports and ignores a line whose seq does not increase', () => {
    const [first = '', second = '', third = ''] = sealed(header, said('a', null), said('b', 'a'))
    const foreign = sealLine(said('x', 'a'), 2).text
    const { accepted, damage, state } = read([first, second, foreign, third])
    expect([accepted, damage]).toEqual([['1 s', '2 a', '3 b'], ['2+0: a foreign line with seq 2']])
    expect(state.tree.get('x')).toBeUndefined()
  })

  test('rejects an implausible seq, so that the next line still gets a safe number', () => {
    const far = sealLine(said('x', 'a'), Number.MAX_SAFE_INTEGER).text
    const { accepted, state, damage } = read([...sealed(header, said('a', null)), far])
    expect([accepted, state.nextSeq]).toEqual([['1 s', '2 a'], 3])
    expect(damage).toEqual([`2+0: a foreign line with seq ${Number.MAX_SAFE_INTEGER}`])
  })

  test('does not count lost lines from the damaged seq of the last line', () => {
    const lines = sealed(header, said('a', null), said('b', 'a'))
    const { state, damage } = read(lines.with(2, (lines[2] as string).replace('"seq":3', '"seq":73')))
    expect([damage, state.nextSeq]).toEqual([['3+1: checksum does not match'], 4])
  })

  test('never replaces an entry by a damaged line with the same id', () => {
    const lines = sealed(header, said('a', null), said('b', 'a'), said('c', 'b'))
    const { state } = read(lines.with(2, (lines[2] as string).replace('"id":"b"', '"id":"a"')))
    expect(state.tree.get('a')?.type).toBe('message')
    expect(path(state)).toEqual(['a', 'gap gap-3', 'c'])
  })

  test('never makes a lost note the leaf', () => {
    const note: DiskLine = { type: 'label', id: 'n', parent_id: 'a', label: { target_id: 'a', label: 'x' } }
    const lines = sealed(header, said('a', null), note)
    expect(path(read(lines.with(2, broken(lines[2] as string))).state)).toEqual(['a'])
  })

  test('keeps what a compaction kept, even if the first kept entry was lost with its id', () => {
    const compaction: DiskLine = {
      type: 'compaction',
      id: 'k',
      parent_id: 'c',
      compaction: { summary: 's', first_kept_entry_id: 'b', tokens_before: 1 },
    }
    const lines = sealed(header, said('a', null), said('b', 'a'), said('c', 'b'), compaction)
    const { state } = read(lines.with(2, `x${broken(lines[2] as string)}`))
    expect(contextPathTo(state.leaf).nodes.map(({ id }) => id)).toEqual(['gap-3', 'c', 'k'])
  })

  test.for([['missing'], ['\0'], [undefined], [5]])(
    'gives a leaf that was moved to %j an id that a parent may have',
    ([target]) => {
      const { state, damage } = read(sealed(header, said('a', null), leaf(target)))
      expect(state.leaf?.id).toMatch(/^[\w-]+$/)
      expect(path(state)[0]).toBe('a')
      expect(damage).toEqual([expect.stringContaining('is referenced but missing')])
    },
  )

  test('shows and reports both of two entries with one id', () => {
    const { state, damage } = read(sealed(header, said('a', null), said('b', 'a'), said('a', 'b'), said('c', 'a')))
    expect(damage).toEqual(['4+0: a second entry a'])
    expect([...state.tree.all()].map(({ id, seq }) => `${id} ${seq}`)).toEqual(['a 2', 'b 3', 'a 4', 'c 5'])
    expect(path(state)).toEqual(['a', 'b', 'a', 'c'])
  })

  test('rejects plain lines after the first writer record, and accepts them before', () => {
    const plain = JSON.stringify(said('a', null))
    expect(read([JSON.stringify(header), plain]).accepted).toEqual(['1 s', '2 a'])
    const { accepted, damage } = read([...sealed(header, writer), plain])
    expect([accepted, damage]).toEqual([['1 s', '2 w'], ['3+1: checksum is missing']])
  })

  test('numbers plain lines after unreadable ones', () => {
    expect(read([JSON.stringify(header), 'junk of some length', JSON.stringify(said('a', null))]).accepted).toEqual([
      '1 s',
      '3 a',
    ])
  })

  test('skips a byte order mark only at the start, and keeps the offset of the line itself', () => {
    const plain = JSON.stringify(said('a', null))
    const { state, damage } = read([`\ufeff${plain}`])
    expect(damage).toEqual(['1+0: the header is missing'])
    expect(state.tree.get('a')).toMatchObject({ at: 3, size: plain.length })
    expect(read([plain, `\ufeff${plain}`]).accepted).toEqual(['1 a'])
  })

  test('reports a second header and keeps the first', () => {
    const { state, damage } = read(sealed(header, { ...header, id: 'other' }))
    expect([state.header?.id, damage]).toEqual(['s', ['2+0: a second header']])
  })

  test('does not parse the start of an over-long line as the line', () => {
    const state = new SessionState({ isWhole: true })
    const reading = new Reading(state)
    const beginning = encoder.encode(JSON.stringify(said('a', null)))
    reading.take({ at: 0, size: maxReadLineBytes + 1, next: maxReadLineBytes + 2, bytes: beginning })
    reading.finish()
    expect(state.damage).toMatchObject([
      { reason: `longer than ${maxReadLineBytes} bytes`, size: maxReadLineBytes + 1 },
    ])
    expect(state.tree.get('a')?.type).toBe('gap')
  })

  test('describes a million bad lines in little memory, first to last', () => {
    const state = new SessionState({ isWhole: true })
    const reading = new Reading(state)
    const bytes = encoder.encode('x')
    for (let at = 0; at < 2_000_000; at += 2) reading.take({ at, size: 1, next: at + 2, bytes })
    reading.finish()
    expect(state.damage).toMatchObject([{ seq: 1, count: 1_000_000, at: 0, size: 1_999_999 }])
  })

  test('a line of type gap is a line: its twin does not remove it', () => {
    const gap: DiskLine = { ...said('a', null), type: 'gap' }
    const { state, accepted } = read(sealed(header, writer, gap, said('b', 'a'), gap))
    expect(accepted).toEqual(['1 s', '2 w', '3 a', '4 b', '5 a'])
    expect([...state.tree.all()].map(({ id, seq }) => `${seq} ${id}`)).toEqual(['3 a', '4 b', '5 a'])
  })
})
