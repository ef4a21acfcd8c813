import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, matchesGlob, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { ask, type Answer } from '../../packages/server/src/testing/running-server.ts'

const root = resolve(import.meta.dirname, '../..')
const readHere = (name: string): Promise<string> => readFile(join(import.meta.dirname, name), 'utf8')
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'example-server-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('the example of a server', () => {
  test('is a program of at most 20 lines', async () => {
    expect((await readHere('server.ts')).trimEnd().split('\n').length).toBeLessThanOrEqual(20)
  })

  test('prints a link, pairs who follows it, hosts a session and goes down when it is told to', async () => {
    const env = { ...process.env, FOLDER: folder, PORT: '0' }
    const child = spawn(process.execPath, ['-C', '@tapetree/source', 'examples/server/server.ts'], {
      cwd: root,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = once(child, 'exit')
    try {
      const printed = once(createInterface(child.stdout), 'line') as Promise<[string]>
      const [line] = await Promise.race([printed, exited.then(() => Promise.reject(new Error('It ended at once.')))])
      const link = new URL(line)
      const code = new URLSearchParams(link.hash.slice(1)).get('pair')
      const url = link.origin
      const paired = await ask('/api/pair', { url, json: { code, as: 'token' } })
      const { token } = paired.body as { token: string }
      const made = await ask('/api/sessions', { url, token, json: { cwd: folder } })
      expect(made.status).toBe(201)
      const { id } = made.body as { id: string }
      expect(await ask(`/api/sessions/${id}/prompt`, { url, token, json: { text: 'Hello?' } })).toMatchObject({
        status: 202,
      })
      const text = await textUntil('run_end', (after) =>
        ask(`/api/sessions/${id}/events?after=${after}&wait=10`, { url, token }),
      )
      expect(text).toContain('I hear you.')
      expect(await ask('/api/sessions', { url, token: `${token.slice(0, -3)}abc` })).toMatchObject({ status: 401 })
      child.kill('SIGTERM')
      expect(await exited).toEqual([0, null])
    } finally {
      child.kill('SIGKILL')
    }
  })
})

/** Reads a log on and on until this is in it. */
async function textUntil(word: string, read: (after: number) => Promise<Answer>): Promise<string> {
  let whole = ''
  let after = 0
  while (!whole.includes(word)) {
    const { status, text, body } = await read(after)
    if (status !== 200) throw new Error(text)
    whole += text
    after = (body as { events: { seq: number }[] }).events.at(-1)?.seq ?? after
  }
  return whole
}

describe('its container', () => {
  test('copies what exists, from an image of a fixed version, and runs as nobody special', async () => {
    const lines = (await readHere('Dockerfile'))
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'))
    const known = /^(FROM|ENV|WORKDIR|COPY|RUN|USER|VOLUME|EXPOSE|HEALTHCHECK|CMD) \S/
    expect(lines.filter((line) => !known.test(line))).toEqual([])
    expect(lines[0]).toMatch(/^FROM node:24\.\d+-[a-z-]+$/)
    const copied = lines.filter((line) => line.startsWith('COPY ')).flatMap((line) => line.split(/\s+/).slice(1, -1))
    expect(copied.filter((path) => !existsSync(join(root, path)))).toEqual([])
    expect(lines.findIndex((line) => line.startsWith('USER node'))).toBeGreaterThan(
      lines.findLastIndex((line) => line.startsWith('RUN ')),
    )
    const commands = lines.filter((line) => /CMD /.test(line)).map((line) => line.slice(line.indexOf('CMD ') + 4))
    expect(commands.map((command) => Array.isArray(JSON.parse(command)))).toEqual([true, true])
    const needed = ['session', 'client', 'agent', 'server']
    for (const name of needed) expect(copied).toContain(`packages/${name}/src`)
    const ignored = (await readHere('Dockerfile.dockerignore')).split('\n')
    expect(ignored).toContain('*')
    const sent = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
    expect(copied.filter((path) => !sent.some((pattern) => matchesGlob(path, pattern)))).toEqual([])
  })

  test('is reached from its own machine only, and may do no more than it has to', async () => {
    const compose = parse(await readHere('compose.yaml')) as {
      services: Record<string, { build: { context: string; dockerfile: string }; ports: string[] }>
      volumes: object
    }
    const { tapetree } = compose.services
    expect(tapetree).toMatchObject({
      ports: ['127.0.0.1:8787:8787'],
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      volumes: ['sessions:/data'],
    })
    expect(compose.volumes).toHaveProperty('sessions')
    const context = resolve(import.meta.dirname, tapetree?.build.context ?? '')
    expect(existsSync(join(context, tapetree?.build.dockerfile ?? 'none'))).toBe(true)
  })
})
