import { request } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { readLog, Stage } from './stage.ts'

async function serve(): Promise<{ stage: Stage; log: () => string[] }> {
  const folder = temporaryFolder()
  const stage = await Stage.open({ folder, random: randomFrom(1) })
  onTestFinished(() => stage.close())
  return { stage, log: () => readLog(folder, stage.sessionId) }
}

/** What a page makes a browser send. `fetch` would not let us lie about Host. */
async function post(stage: Stage, path: string, headers: Record<string, string>): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const sent = request({ host: '127.0.0.1', port: stage.port, path, method: 'POST', headers }, (response) => {
    response.resume()
    response.once('end', () => resolve(response.statusCode ?? 0))
  })
  sent.once('error', reject)
  sent.end(JSON.stringify({ text: 'rm -rf everything', command: 'touch /tmp/owned' }))
  return promise
}

async function openSocket(stage: Stage, headers: Record<string, string>): Promise<string> {
  const socket = new WebSocket(stage.url, ['tapetree.v1'], { headers })
  const { promise, resolve } = Promise.withResolvers<string>()
  socket.once('open', () => socket.send(JSON.stringify({ type: 'attach', data: { client: { id: 'page' } } })))
  socket.once('message', () => resolve('let in'))
  socket.once('error', () => resolve('refused'))
  socket.once('close', (code) => resolve(`closed ${code}`))
  const outcome = await promise
  socket.terminate()
  return outcome
}

test('FINDINGS: a web page cannot make a local server do anything, whatever its Host, its Origin and its content type', async () => {
  const { stage, log } = await serve()
  const before = log()
  const prompt = `/api/sessions/${stage.sessionId}/prompt`
  const own = `127.0.0.1:${stage.port}`
  const plain = { 'content-type': 'text/plain' }
  const json = { 'content-type': 'application/json' }
  const token = { authorization: `Bearer ${stage.token}` }
  const evil = { origin: 'https://evil.example' }
  const statuses = [
    await post(stage, prompt, { host: own, ...plain, ...evil }),
    await post(stage, prompt, { host: own, ...json, ...evil }),
    await post(stage, prompt, { host: 'evil.example', ...json, ...token }),
    await post(stage, prompt, { host: own, ...json, ...evil, ...token }),
    await post(stage, prompt, { host: own, ...plain, ...token }),
    await post(stage, prompt, { host: own, ...json }),
  ]
  for (const status of statuses) expect(status).toBeGreaterThanOrEqual(400)
  for (const status of statuses) expect(status).toBeLessThan(500)
  expect(await openSocket(stage, evil)).not.toBe('let in')
  expect(await openSocket(stage, { ...evil, ...token })).not.toBe('let in')
  expect(await openSocket(stage, { ...token, host: 'evil.example' })).not.toBe('let in')
  expect(log()).toEqual(before)
  expect(await openSocket(stage, token)).toBe('let in')
})
