import { expect, test } from 'vitest'
import { PublicUrl } from './public-url.ts'

test.each([
  [
    'https://tape.example',
    { origin: 'https://tape.example', host: 'tape.example', prefix: '', href: 'https://tape.example' },
  ],
  ['https://Tape.example:443/', { origin: 'https://tape.example', host: 'tape.example', prefix: '' }],
  [
    'https://tape.example:8443/a/b/',
    { host: 'tape.example:8443', prefix: '/a/b', href: 'https://tape.example:8443/a/b' },
  ],
  ['http://[2001:db8::1]:8080', { scheme: 'http', host: '[2001:db8::1]:8080' }],
])('the public URL %s has an origin, a host and a prefix', (text, expected) => {
  const { origin, scheme, host, prefix, href } = new PublicUrl(text)
  expect({ origin, scheme, host, prefix, href }).toMatchObject(expected)
})

test.each([
  ['tape.example', /must start with https/],
  ['ftp://tape.example', /must start with https/],
  ['https://', /must start with https/],
  ['https://tape.example/?a=b', /query/],
  ['https://tape.example/#pair=x', /fragment/],
  ['https://user@tape.example/', /user name/],
  ['https://tape.example/a b', /letters, digits/],
  ['https://tape.example//a', /letters, digits/],
  ['https://tape.example/;Path=x', /letters, digits/],
  ['https://tape.example/api', /routes/],
  ['https://tape.example/api/agents', /routes/],
  ['https://tape.example/metrics', /routes/],
])('%s is no public URL', (text, reason) => {
  expect(() => new PublicUrl(text)).toThrow(reason)
})

test('a public URL is named with its port or without one', () => {
  const url = new PublicUrl('https://tape.example/agents')
  const hosts = ['tape.example', 'TAPE.example:443', 'tape.example:80', 'tape.example.', 'evil.example', undefined]
  expect(hosts.filter((host) => url.isNamedBy(host))).toEqual(['tape.example', 'TAPE.example:443'])
})
