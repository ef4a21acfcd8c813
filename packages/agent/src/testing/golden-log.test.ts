import { memoryStore, text } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { goldenLog } from './golden-log.ts'

const now = () => new Date('2026-01-01T00:00:00Z')

async function playOnce(): Promise<string[]> {
  const session = await memoryStore({ now }).create({ cwd: '/tmp/place/work' })
  const runId = crypto.randomUUID()
  const leafId = await session.appendMessage('user', [text('look into /tmp/place/work/a')], { with: { runId } })
  await session.append({ type: 'run_start', runStart: { runId, leafId } })
  const { id } = await session.submit('and then?')
  await session.append({
    type: 'tool_start',
    toolStart: {
      runId,
      callId: 'call-1',
      name: 'bash',
      host: 'here',
      bootId: crypto.randomUUID(),
      spool: `/tmp/place/${id}`,
    },
  })
  const request = { sha256: 'ff'.repeat(32), adapter: 'scripted', adapterVersion: '1', leafId }
  await session.append({ type: 'message', message: { role: 'assistant', content: [text('yes')] } }, { request })
  return goldenLog(session, { folders: { '/tmp/place': '<place>', '/tmp/place/work': '<work>' } })
}

describe('a golden log', () => {
  test('is the same each time, with one line for each line and its members in order', async () => {
    const golden = await playOnce()
    expect(golden).toEqual(await playOnce())
    const at = '"timestamp":"2026-01-01T00:00:00.000Z"'
    expect(golden).toEqual([
      `{"type":"session","id":"session1",${at},"version":1,"cwd":"<work>"}`,
      `{"type":"writer","id":"writer1",${at},"writer":{"term":1,"host":"<host>","process":"<process>","format":1}}`,
      `{"type":"message","id":"m1","parent_id":null,${at},"message":{"role":"user","content":[{"type":"text","text":{"content":"look into <work>/a"}}],"run_id":"run1"}}`,
      `{"type":"run_start","id":"run_start1",${at},"run_start":{"run_id":"run1","leaf_id":"m1"}}`,
      `{"type":"submission","id":"submission1",${at},"submission":{"action":"add","id":"q1","delivery":"follow-up","message":"and then?","image_ids":[],"queued_at":"2026-01-01T00:00:00.000Z"}}`,
      `{"type":"tool_start","id":"tool_start1",${at},"tool_start":{"run_id":"run1","call_id":"call-1","name":"bash","host":"<host>","boot_id":"<boot id>","spool":"<place>/q1"}}`,
      `{"type":"message","id":"m2","parent_id":"m1",${at},"message":{"role":"assistant","content":[{"type":"text","text":{"content":"yes"}}]},"request":{"sha256":"<sha256>","adapter":"scripted","adapter_version":"1","leaf_id":"m1"}}`,
    ])
  })
})
