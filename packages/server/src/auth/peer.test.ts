import { describe, expect, test } from 'vitest'
import { peerOf, TrustedProxies, type Arrival } from './peer.ts'

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

  test.each(['proxy.example', '10.0.0.0/x', '10.0.0.0/', ''])('are refused from %j, which is no address', (entry) => {
    expect(() => new TrustedProxies([entry])).toThrow('neither an address nor a network')
  })
})
