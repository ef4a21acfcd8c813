import { expect, test } from 'vitest'
import { mcpServersSchema, urlProblem } from './server-settings.ts'

test('a server is a program with arguments, or a URL with headers', () => {
  const settings = {
    files: { type: 'stdio', command: 'npx', args: ['-y', 'files'], env: { pass: ['TOKEN'] } },
    web: { type: 'http', url: 'https://example.com/mcp', oauth: {} },
  }
  expect(mcpServersSchema.parse(settings)).toEqual({
    files: { type: 'stdio', command: 'npx', args: ['-y', 'files'], env: { pass: ['TOKEN'], set: {} } },
    web: { type: 'http', url: 'https://example.com/mcp', headers: {}, oauth: {} },
  })
})

test.each([
  { type: 'stdio', command: '' },
  { type: 'stdio', command: 'a\0b' },
  { type: 'stdio', command: 'a', shell: true },
  { type: 'stdio', command: 'a', env: { pass: ['*'] } },
  { type: 'stdio', command: 'a', env: { set: { 'A=B': 'c' } } },
  { type: 'http', url: 'http://example.com/' },
  { type: 'http', url: 'https://example.com/', headers: { 'X-A': 'b\r\nX-C: d' } },
  { type: 'http', url: 'https://example.com/', headers: { 'X A': 'b' } },
])('%o is refused', (settings) => {
  expect(mcpServersSchema.safeParse({ test: settings }).success).toBe(false)
})

test.each(['a__b', '_a', 'a_', 'a b', 'a.b', '', 'ä', 'x'.repeat(33)])('the server name %o is invalid', (name) => {
  expect(mcpServersSchema.safeParse({ [name]: { type: 'stdio', command: 'a' } }).success).toBe(false)
})

test.each([
  ['https://example.com/mcp', true],
  ['http://127.0.0.1:3000/', true],
  ['http://localhost/', true],
  ['http://[::1]:8080/', true],
  ['http://2130706433/', true], // parsed as 127.0.0.1
  ['http://localhost.example.com/', false],
  ['http://127.0.0.1.example.com/', false],
  ['http://192.168.0.1/', false],
  ['https://user:pass@example.com/', false],
  ['http://localhost@example.com/', false],
  ['file:///etc/passwd', false],
  ['javascript:alert(1)', false],
  ['ws://127.0.0.1/', false],
  ['', false],
])('whether %s is allowed: %s', (url, isAllowed) => {
  expect(urlProblem(url) === undefined).toBe(isAllowed)
})
