import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeCertificate } from './self-signed.ts'
import { loadTls } from './tls.ts'

const day = 24 * 60 * 60_000
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tls-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('a self-signed certificate', () => {
  test('covers its names and addresses, is valid a little more than a year, and signs no others', () => {
    const now = Date.now()
    const { cert, key } = makeCertificate(['localhost', 'tape.example', '127.0.0.1', '::1', 'fe80::1:2'], now)
    const certificate = new X509Certificate(cert)
    expect(certificate.subjectAltName).toBe(
      'DNS:localhost, DNS:tape.example, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:FE80:0:0:0:0:0:1:2',
    )
    expect(certificate.verify(certificate.publicKey)).toBe(true)
    expect(certificate.ca).toBe(false)
    expect(certificate.checkHost('evil.example')).toBeUndefined()
    expect(Date.parse(certificate.validFrom)).toBeLessThan(now)
    expect(Date.parse(certificate.validTo) - now).toBeGreaterThan(396 * day)
    expect(key).toContain('PRIVATE KEY')
  })

  test('can be valid beyond 2049', () => {
    const certificate = new X509Certificate(makeCertificate(['localhost'], Date.parse('2055-05-05')).cert)
    expect(certificate.validTo).toContain('2056')
  })

  test('leaves no key behind on a full disk', async () => {
    const module = new URL('./tls.ts', import.meta.url).href
    const names = Array.from({ length: 200 }, (_, index) => `host-${index}.example`)
    const program = `import { loadTls } from ${JSON.stringify(module)}
      const options = { selfSigned: { folder: ${JSON.stringify(folder)} } }
      await loadTls(options, { required: ${JSON.stringify(names)} }, Date.now()).catch((error) => console.log(error.code))`
    const flags = ['-C', '@tapetree/source', '--input-type=module', '-e', program]
    const limited = ['-c', 'ulimit -f 1; exec "$0" "$@"', process.execPath, ...flags]
    expect((await promisify(execFile)('sh', limited)).stdout).toBe('EFBIG\n')
    expect(await readdir(folder)).toEqual([])
  })

  test('stays the same across starts, until it expires or the names change', async () => {
    const now = Date.now()
    const load = (names: string[], at = now): Promise<string | undefined> =>
      loadTls({ selfSigned: { folder } }, { required: names }, at).then(({ fingerprint }) => fingerprint)
    const first = await load(['localhost', '127.0.0.1'])
    expect(first).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
    expect(await load(['localhost'])).toBe(first)
    expect((await stat(join(folder, 'self-signed.pem'))).mode & 0o777).toBe(0o600)
    const second = await load(['localhost', 'tape.example'])
    expect(second).not.toBe(first)
    expect(await load(['tape.example'], now + 380 * day)).toBe(second)
    expect(await load(['tape.example'], now + 391 * day)).not.toBe(second)
    expect(await readdir(folder)).toEqual(['self-signed.pem'])
  })
  test('is replaced for a new address, keeps the names of earlier networks, and says why', async () => {
    const now = Date.now()
    const load = (required: string[], also: string[] = [], at = now): ReturnType<typeof loadTls> =>
      loadTls({ selfSigned: { folder } }, { required, also }, at)
    const home = await load(['localhost', '192.0.2.7'], ['2001:db8::7'])
    expect(home.renewed).toBeUndefined()
    const office = await load(['localhost', '198.51.100.7'])
    expect(office.renewed).toBe('new-name')
    expect(office.fingerprint).not.toBe(home.fingerprint)
    for (const address of ['192.0.2.7', '2001:db8::7', '198.51.100.7'])
      expect(new X509Certificate(office.cert).checkIP(address)).toBe(address)
    const back = await load(['localhost', '192.0.2.7'], ['2001:db8::9'])
    expect([back.fingerprint, back.renewed]).toEqual([office.fingerprint, undefined])
    expect((await load(['localhost'], [], now + 391 * day)).renewed).toBe('expires')
  })
})
