import { limits } from '@tapetree/client'
import { memoryStore, text, type Content, type Session, type SessionSnapshot } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { fitSnapshot } from './fit-snapshot.ts'

const long = 'a "long" word '.repeat(3000)

async function sessionWith(...entries: ('user' | 'call' | 'result')[]): Promise<Session> {
  const session = await memoryStore().create()
  for (const [index, kind] of entries.entries()) {
    if (kind === 'user') await session.appendMessage('user', [text(`${index} ${long}`)])
    else if (kind === 'call') await session.appendMessage('assistant', [call(String(index))])
    else await session.appendMessage('tool', [result(String(entries.lastIndexOf('call')))])
  }
  return session
}

function call(id: string): Content {
  return { type: 'tool_use', toolUse: { id, name: 'read', input: { path: long } } }
}

function result(toolUseId: string): Content {
  return { type: 'tool_result', toolResult: { toolUseId, content: long } }
}

function bytesOf({ lines }: SessionSnapshot): number {
  return Buffer.byteLength(JSON.stringify(lines))
}

describe('a snapshot for a frame', () => {
  test('is left as it is where it fits', async () => {
    const session = await sessionWith('user', 'user')
    const snapshot = await session.snapshot({ entries: 50 })
    expect(fitSnapshot(snapshot)).toBe(snapshot)
  })

  test('has the newest lines that fit, and says where a reader pages back from', async () => {
    const session = await sessionWith('user', 'user', 'user', 'user', 'user', 'user', 'user', 'user')
    const snapshot = await session.snapshot({ entries: 50 })
    const fitting = fitSnapshot(snapshot)
    expect(bytesOf(snapshot)).toBeGreaterThan(limits.maxFrameBytes)
    expect(bytesOf(fitting)).toBeLessThanOrEqual(limits.maxFrameBytes / 2)
    expect(fitting.lines).toEqual(snapshot.lines.slice(-2))
    expect(JSON.parse(fitting.lines[0]?.text ?? '')).toMatchObject({ id: fitting.before })
    expect(fitting.leafId).toBe(session.leafId)
  })

  test('does not begin with a result whose call is left out', async () => {
    const session = await sessionWith('user', 'user', 'call', 'result', 'user')
    const { lines } = fitSnapshot(await session.snapshot({ entries: 50 }))
    expect(lines.map((line) => line.seq)).toEqual([session.head.seq])
  })

  test('has the newest line, however long, and a result where there is nothing else', async () => {
    const session = await sessionWith('user', 'call', 'result')
    await session.appendMessage('tool', [
      { type: 'tool_result', toolResult: { toolUseId: '1', content: long.repeat(4) } },
    ])
    const { lines } = fitSnapshot(await session.snapshot({ entries: 50 }))
    expect(lines.map((line) => line.seq)).toEqual([session.head.seq])
  })
})
