import { describe, expect, test } from 'vitest'
import { AllowedHosts, changesSomething, checkOrigin, mediaType, type OriginQuestion } from './host-origin.ts'

describe('a Host header', () => {
  const hosts = new AllowedHosts(['tape.example', 'only.example:8443'])

  test.each([
    'localhost',
    'LOCALHOST:80',
    '127.0.0.1:1234',
    '[::1]:1234',
    'tape.example',
    'Tape.Example:9',
    'only.example:8443',
  ])('%s is allowed', (host) => expect(hosts.has(host)).toBe(true))

  test.each([
    undefined,
    '',
    ' ',
    'evil.example',
    'localhost.',
    'localhost.:80',
    'localhost.evil.example',
    'evil-localhost',
    'localhost:80:80',
    'localhost:123456',
    'localhost:',
    'localhost@evil.example',
    'evil.example#localhost',
    'localhost/evil',
    'localhost, localhost',
    '0.0.0.0',
    '0.0.0.0:80',
    '0',
    '127.1',
    '127.0.0.1.',
    '127.0.0.2',
    '127.0.0.1.nip.example',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[0:0:0:0:0:0:0:1]',
    '::1',
    'only.example',
    'only.example:80',
    'tape.example.',
    'a.tape.example',
    'lоcalhost',
  ])('%s is rejected', (host) => expect(hosts.has(host)).toBe(false))
})

describe('a Host header with an address', () => {
  const addresses = ['192.0.2.7']
  const hosts = new AllowedHosts([], (address) => addresses.includes(address))

  test('is allowed as soon as and as long as the machine has the address', () => {
    expect([hosts.has('192.0.2.7:8787'), hosts.has('[2001:DB8::7]:8787')]).toEqual([true, false])
    addresses.splice(0, 1, '2001:db8::7')
    expect([hosts.has('192.0.2.7:8787'), hosts.has('[2001:DB8::7]:8787')]).toEqual([false, true])
  })

  test('is not a name, whose address another person could set', () => {
    const all = new AllowedHosts([], () => true)
    expect(
      ['evil.example', '192.0.2.7.evil.example', '0300.0.2.7', '2001:db8::7'].filter((host) => all.has(host)),
    ).toEqual([])
  })
})

describe('an Origin header', () => {
  const question: OriginQuestion = {
    origin: undefined,
    fetchSite: undefined,
    scheme: 'http',
    host: 'localhost:1234',
    byCookie: false,
    changesSomething: true,
  }

  test.each([
    'null',
    '',
    'http://evil.example',
    'https://localhost:1234',
    'http://localhost',
    'http://localhost:12345',
    'http://localhost:123',
    'http://localhost:1234.evil.example',
    'http://localhost:1234/',
    'http://LOCALHOST:1234',
    'http://localhost.:1234',
    'http://user@localhost:1234',
    'http://127.0.0.1:1234',
    'http://evil.localhost:1234',
    'http://localhost:1234, http://localhost:1234',
    'file://',
    'chrome-extension://abc',
  ])('%j is foreign, with a token and with a cookie, for any method', (origin) => {
    for (const byCookie of [true, false]) {
      for (const changes of [true, false])
        expect(checkOrigin({ ...question, origin, byCookie, changesSomething: changes })).toBe('foreign')
    }
  })

  test('of our own is accepted, also with the default port of the scheme', () => {
    expect(checkOrigin({ ...question, origin: 'http://localhost:1234', byCookie: true })).toBe('fine')
    const plain = { ...question, origin: 'https://tape.example', scheme: 'https', byCookie: true } as const
    expect(checkOrigin({ ...plain, host: 'tape.example' })).toBe('fine')
    expect(checkOrigin({ ...plain, host: 'tape.example:443' })).toBe('fine')
    expect(checkOrigin({ ...plain, host: 'tape.example:8443' })).toBe('foreign')
  })

  test('may be absent for a program, and with a cookie only if nothing changes', () => {
    expect(checkOrigin(question)).toBe('fine')
    expect(checkOrigin({ ...question, byCookie: true })).toBe('missing')
    expect(checkOrigin({ ...question, byCookie: true, changesSomething: false })).toBe('fine')
  })

  test('that is absent does not help a page on another port, which browsers call the same site', () => {
    const read = { ...question, byCookie: true, changesSomething: false }
    for (const fetchSite of ['same-site', 'cross-site']) expect(checkOrigin({ ...read, fetchSite })).toBe('foreign')
    for (const fetchSite of ['same-origin', 'none']) expect(checkOrigin({ ...read, fetchSite })).toBe('fine')
  })

  test('can be allowed by name', () => {
    const also = new Set(['http://localhost:5173'])
    expect(checkOrigin({ ...question, origin: 'http://localhost:5173' }, also)).toBe('fine')
    expect(checkOrigin({ ...question, origin: 'http://localhost:5174' }, also)).toBe('foreign')
  })
})

test('a media type is recognized with any parameters', () => {
  expect(mediaType('Application/JSON; charset=utf-8')).toBe('application/json')
  expect(mediaType('text/plain; application/json')).toBe('text/plain')
  expect(mediaType(undefined)).toBe('')
})

test('only GET and HEAD change nothing', () => {
  expect(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'].filter(changesSomething)).toEqual([
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'QUERY',
  ])
})
