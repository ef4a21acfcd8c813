import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { connect } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import { makeCertificate } from '../../packages/server/src/self-signed.ts'
import { startChild, type Child } from '../../packages/cli/src/host/testing/child.ts'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { watchCertificate } from '../../packages/cli/src/commands/serve/certificate.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-certificate-'))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  return folder
}

interface Served {
  child: Child
  port: number
  certFile: string
  keyFile: string
  /** The next line of its log with this text. The watcher of the files may have logged others. */
  logged: (text: string) => Promise<Record<string, unknown>>
}

async function serveWith(certificate: { cert: string; key: string }): Promise<Served> {
  const home = await fakeHome()
  cleanUps.push(() => home[Symbol.asyncDispose]())
  const folder = await temporaryFolder()
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  await writeFile(certFile, certificate.cert)
  await writeFile(keyFile, certificate.key)
  const args = ['serve', '--json', '--port', '0', '--log-level', 'info', '--tls-cert', certFile, '--tls-key', keyFile]
  const child = startChild(new URL('../../packages/cli/src/main.ts', import.meta.url), args, home)
  cleanUps.push(() => child[Symbol.asyncDispose]())
  const { url } = JSON.parse(await child.line()) as { url: string }
  const lines = createInterface({ input: child.process.stderr })[Symbol.asyncIterator]()
  const logged = async (text: string): Promise<Record<string, unknown>> => {
    for (;;) {
      const line = String((await lines.next()).value)
      if (line.includes(text)) return JSON.parse(line) as Record<string, unknown>
    }
  }
  return { child, port: Number(new URL(url).port), certFile, keyFile, logged }
}

/** The fingerprint of the certificate that a new connection gets. */
async function handshake(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

async function statusOver(agent: Agent, port: number): Promise<{ status: number | undefined; isReused: boolean }> {
  const asked = request({ agent, host: '127.0.0.1', port, path: '/api/health', rejectUnauthorized: false })
  asked.end()
  const [response] = (await once(asked, 'response')) as [NodeJS.ReadableStream & { statusCode?: number }]
  response.resume()
  await once(response, 'end')
  return { status: response.statusCode, isReused: asked.reusedSocket }
}

const fingerprintOf = ({ cert }: { cert: string }): string => new X509Certificate(cert).fingerprint256

describe('SIGHUP', () => {
  test('gives new connections the new certificate, and old connections go on', async () => {
    const [first, second] = [makeCertificate(['localhost'], Date.now()), makeCertificate(['localhost'], Date.now())]
    const { child, port, certFile, keyFile, logged } = await serveWith(first)
    expect(await handshake(port)).toBe(fingerprintOf(first))
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    cleanUps.push(() => agent.destroy())
    expect(await statusOver(agent, port)).toEqual({ status: 200, isReused: false })
    await writeFile(keyFile, second.key)
    await writeFile(certFile, second.cert)
    child.process.kill('SIGHUP')
    expect(await logged('The certificate was reloaded.')).toMatchObject({ level: 'info' })
    expect(await handshake(port)).toBe(fingerprintOf(second))
    expect(await statusOver(agent, port)).toEqual({ status: 200, isReused: true })
    agent.destroy()
    child.process.kill('SIGTERM')
    expect(await child.ended).toBe(0)
  })

  test('keeps the old certificate and logs why if the new one cannot be used', async () => {
    const first = makeCertificate(['localhost'], Date.now())
    const { child, port, certFile, logged } = await serveWith(first)
    const other = makeCertificate(['localhost'], Date.now())
    const broken = { text: 'not a certificate', empty: '', 'of another key': other.cert }
    for (const [name, content] of Object.entries(broken)) {
      await writeFile(certFile, content)
      child.process.kill('SIGHUP')
      const line = await logged('not reloaded')
      expect([name, line]).toMatchObject([name, { level: 'error', error: { message: expect.any(String) } }])
      expect([name, await handshake(port)]).toEqual([name, fingerprintOf(first)])
    }
    await rm(certFile)
    child.process.kill('SIGHUP')
    expect(await logged('Cannot use')).toMatchObject({ level: 'error' })
    expect(await handshake(port)).toBe(fingerprintOf(first))
  })

  test('does not end a server without a certificate file', async () => {
    const home = await fakeHome()
    cleanUps.push(() => home[Symbol.asyncDispose]())
    const args = ['serve', '--json', '--port', '0', '--log-level', 'info']
    const child = startChild(new URL('../../packages/cli/src/main.ts', import.meta.url), args, home)
    cleanUps.push(() => child[Symbol.asyncDispose]())
    const { url } = JSON.parse(await child.line()) as { url: string }
    const lines = createInterface({ input: child.process.stderr })[Symbol.asyncIterator]()
    child.process.kill('SIGHUP')
    expect(String((await lines.next()).value)).toContain('Nothing to reload')
    expect((await fetch(new URL('/api/health', url))).status).toBe(200)
  })
})

test('a watched certificate is read again after its link points to another file', async () => {
  const folder = await temporaryFolder()
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  await writeFile(join(folder, 'cert-1.pem'), 'one')
  await writeFile(join(folder, 'cert-2.pem'), 'number two')
  await writeFile(files.key, 'key')
  await symlink('cert-1.pem', files.cert)
  const changed = Promise.withResolvers<void>()
  const stop = watchCertificate(files, () => changed.resolve(), { intervalMs: 20 })
  cleanUps.push(stop)
  // The watcher reads the first state in the background; each replacement is a change to the one before.
  const keepChanging = setInterval(() => {
    void symlink('cert-2.pem', join(folder, 'next'))
      .then(() => rename(join(folder, 'next'), files.cert))
      .catch(() => undefined)
  }, 50)
  cleanUps.push(() => clearInterval(keepChanging))
  await changed.promise
})
