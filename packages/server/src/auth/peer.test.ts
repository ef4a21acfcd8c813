import { describe, expect, test } from 'vitest'
import { peerOf, TrustedProxies, type Arrival } from './peer.ts'
import { PublicUrl } from './public-url.ts'

const forwarded: Record<string, string> = {
  host: 'inner:80',
  'x-forwarded-for': '6.6.6.6, 9.9.9.9, 10.0.0.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'evil.example, tape.example',
}

function arrive(remoteAddress: string, headers = forwarded): Arrival {
  return { remoteAddress, isEncrypted: false, isUnixSocket: false, header: (name) => headers[name] }
}

describe('forwarded headers', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '::1'])

  test('are trusted from a listed proxy: the last client that is not a proxy, and its host', () => {
    const expected = { address: '9.9.9.9', scheme: 'https', host: 'tape.example', isOwner: false }
    expect(peerOf(arrive('10.1.2.3'), proxies)).toEqual(expected)
    expect(peerOf(arrive('::ffff:10.1.2.3'), proxies)).toEqual(expected)
    expect(peerOf(arrive('::1'), proxies)).toEqual(expected)
  })

  test('are ignored from any other address', () => {
    const expected = { address: '11.0.0.1', scheme: 'http', host: 'inner:80', isOwner: false }
    expect(peerOf(arrive('11.0.0.1'), proxies)).toEqual(expected)
    expect(peerOf({ ...arrive('10.0.0.1') }, new TrustedProxies([]))).toMatchObject({
      address: '10.0.0.1',
      scheme: 'http',
    })
  })

  test('that are malformed are ignored', () => {
    const odd = { host: 'inner', 'x-forwarded-for': 'unknown', 'x-forwarded-proto': 'gopher', 'x-forwarded-host': ' ' }
    const expected = { address: '10.1.2.3', scheme: 'http', host: 'inner', isOwner: false }
    expect(peerOf(arrive('10.1.2.3', odd), proxies)).toEqual(expected)
  })

  test('never make a client the owner of the Unix socket, and are ignored on it', () => {
    const peer = peerOf({ ...arrive(''), remoteAddress: undefined, isUnixSocket: true }, proxies)
    expect(peer).toEqual({ address: '', scheme: 'http', host: 'inner:80', isOwner: true })
  })

  test.each(['proxy.example', '10.0.0.0/x', '10.0.0.0/', '10.0.0.0/33', '::/129', ''])(
    'are refused from %j, which is no address',
    (entry) => {
      expect(() => new TrustedProxies([entry])).toThrow('neither an address nor a network')
    },
  )
})

describe('a request by the name of the public URL', () => {
  const publicUrl = new PublicUrl('https://tape.example:8443/agents')
  const atPublic = { scheme: 'https', host: 'tape.example:8443', prefix: '/agents' }

  test.each([
    ['the Host of the client', { host: 'tape.example:8443' }],
    ['its Host without the port', { host: 'Tape.Example' }],
    ['only X-Forwarded-Host', { host: '127.0.0.1:8787', 'x-forwarded-host': 'tape.example:8443' }],
    ['the wrong scheme', { host: 'tape.example:8443', 'x-forwarded-proto': 'http' }],
  ])('has its scheme, port and path if the proxy passes %s', (_, headers: Record<string, string>) => {
    expect(peerOf(arrive('10.0.0.1', headers), new TrustedProxies(['10.0.0.1']), publicUrl)).toMatchObject(atPublic)
  })

  test.each([
    ['another name', { host: 'localhost:8787' }],
    ['another port', { host: 'tape.example:8787' }],
    ['the name in a header of an unlisted proxy', { host: 'localhost', 'x-forwarded-host': 'tape.example:8443' }],
  ])('is one only then: not with %s', (_, headers: Record<string, string>) => {
    const peer = peerOf(arrive('11.0.0.1', headers), new TrustedProxies(['10.0.0.1']), publicUrl)
    expect(peer).toEqual({ address: '11.0.0.1', scheme: 'http', host: headers['host'], isOwner: false })
  })

  test('does not happen on the Unix socket', () => {
    const arrival = { ...arrive('', { host: 'tape.example' }), isUnixSocket: true }
    expect(peerOf(arrival, new TrustedProxies([]), publicUrl)).toMatchObject({ scheme: 'http', isOwner: true })
  })
})
