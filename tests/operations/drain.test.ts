import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { sayAndWait } from '../peers/answers.ts'
import { logLines } from '../peers/session-files.ts'
import { serve, untilLine, type Served } from './served.ts'

/**
 * Sends a whole request and the beginning of another in one write. When the first has its response, the server has the rest too.
 * Returns a function that sends the end and resolves with the second response.
 */
async function begin({ url, token }: Served, path: string, end: string): Promise<() => Promise<string>> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const request = (target: string): string =>
    `GET ${target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const second = request(path)
  const closed = once(socket, 'close')
  let received = ''
  socket.on('data', (data: Buffer) => (received += data.toString()))
  socket.write(request('/api/caller') + second.slice(0, second.length - end.length))
  await once(socket, 'data')
  return async () => {
    socket.write(end)
    await closed
    return received.slice(received.lastIndexOf('HTTP/1.1'))
  }
}

test('SIGTERM turns readiness, ends streams, tells clients 1012, answers open requests and leaves with 0', async () => {
  const home = await fakeHome()
  onTestFinished(() => home[Symbol.asyncDispose]())
  home.provider.script(sayAndWait(['Half an answer'], 'never', []))
  const served = await serve(home)
  const { id } = (await served.ask('/api/sessions', { cwd: home.cwd, prompt: 'Begin' })) as { id: string }
  const started = await untilLine(served, id, { type: 'run_start' })

  const protocols = ['tapetree.v1', `bearer.${served.token}`]
  const socket = new WebSocket(`${served.url.replace('http', 'ws')}/api/sessions/${id}/ws`, protocols)
  const frames: string[] = []
  socket.addEventListener('message', ({ data }) => frames.push(String(data)))
  const closed = new Promise<number>((resolve) => socket.addEventListener('close', ({ code }) => resolve(code)))
  const attached = new Promise((resolve) => socket.addEventListener('message', resolve, { once: true }))
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  socket.send(JSON.stringify({ type: 'attach', data: { client: { id: 'me', name: 'me', kind: 'test' } } }))
  await attached

  const longPoll = await begin(served, `/api/sessions/${id}/events?after=${started + 1000}&wait=60`, '')
  const ready = await begin(served, '/api/ready', '\r\n')
  const list = await begin(served, '/api/sessions', '\r\n')

  served.child.process.kill('SIGTERM')
  expect(await closed).toBe(1012)
  expect(frames.map((frame) => (JSON.parse(frame) as { type: string }).type)).toContain('bye')
  expect(await ready()).toMatch(/^HTTP\/1\.1 503 [\s\S]*shutting down/)
  expect(await list()).toMatch(/^HTTP\/1\.1 200 /)
  expect(await longPoll()).toMatch(/^HTTP\/1\.1 200 [\s\S]*"events":\[\]/)
  expect(await served.child.ended).toBe(0)
  expect((await logLines(home)).filter((line) => line.includes('"type":"run_end"'))).toEqual([])
  await expect(fetch(new URL('/api/health', served.url))).rejects.toThrow('fetch failed')
})
