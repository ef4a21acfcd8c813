import type { Message } from '@tapetree/session'
import { describe, expect, it, test } from 'vitest'
import { createRedactor } from './redactor.ts'
import { randomFrom } from '@tapetree/session/testing'
import { allowanceOf, secretsOf } from './redaction-policy.ts'
import { pick, plant, secretShapes } from './testing/planted-secrets.ts'

const redactor = createRedactor()
const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`
const random = 'Zk3v9QpL7xWm2RtY8sBn4'

test('all text in a message is redacted', () => {
  const message: Message = {
    role: 'assistant',
    content: [
      { type: 'text', text: { content: `use ${token}` } },
      { type: 'reasoning', reasoning: { text: `the key ${token}`, signature: token } },
      {
        type: 'tool_use',
        toolUse: {
          id: token,
          name: 'bash',
          input: { command: `echo ${token}`, env: [{ API_KEY: random }] },
          partialInput: token,
        },
      },
      { type: 'tool_result', toolResult: { toolUseId: token, content: [{ type: 'text', text: { content: token } }] } },
    ],
    error: { kind: 'auth', message: `bad key ${token}` },
    bashExecution: { command: `echo ${token}`, output: token, outputBlob: { sha256: token, size: 1 } },
  }
  expect(redactor.json(message)).toEqual({
    role: 'assistant',
    content: [
      { type: 'text', text: { content: 'use [redacted: github-token]' } },
      { type: 'reasoning', reasoning: { text: 'the key [redacted: github-token]', signature: token } },
      {
        type: 'tool_use',
        toolUse: {
          id: token,
          name: 'bash',
          input: { command: 'echo [redacted: github-token]', env: [{ API_KEY: '[redacted: secret]' }] },
          partialInput: '[redacted: github-token]',
        },
      },
      {
        type: 'tool_result',
        toolResult: { toolUseId: token, content: [{ type: 'text', text: { content: '[redacted: github-token]' } }] },
      },
    ],
    error: { kind: 'auth', message: 'bad key [redacted: github-token]' },
    bashExecution: {
      command: 'echo [redacted: github-token]',
      output: '[redacted: github-token]',
      outputBlob: { sha256: token, size: 1 },
    },
  })
})

describe('provider data stays', () => {
  it.each([
    { reasoning: { text: '', signature: token } },
    { text: { content: 'a', providerMetadata: { google: { thoughtSignature: token } } } },
    { encrypted_content: token },
    { reasoning: { text: 'a', providerMetadata: { openai: { itemId: token, reasoningEncryptedContent: token } } } },
    { source: { type: 'base64', mediaType: 'image/png', data: token } },
    { type: 'image', mimeType: 'image/png', data: token },
    { source: { type: 'blob', mediaType: 'image/png', sha256: token, size: 3 } },
  ])('%j', (value) => {
    expect(redactor.json(value)).toBe(value)
  })

  it('but the URL of an image is text', () => {
    const source = { type: 'url', mediaType: 'image/png', data: `https://x/?k=${token}` }
    expect(redactor.json(source)).toEqual({ ...source, data: 'https://x/?k=[redacted: github-token]' })
  })

  it('and a sentence is not a signature', () => {
    expect(redactor.json({ signature: `signed with ${token}` })).toEqual({
      signature: 'signed with [redacted: github-token]',
    })
  })
})

test('a value is recognized by its key', () => {
  expect(redactor.json({ password: 'hunter2!x', client_secret: random, name: random, count: 3, none: null })).toEqual({
    password: '[redacted: password]',
    client_secret: '[redacted: secret]',
    name: random,
    count: 3,
    none: null,
  })
})

test('keys are redacted and none is lost', () => {
  const other = `ghp_${'z9Y8x7W6v5U4'.repeat(3)}`
  expect(redactor.json({ [token]: 1, [other]: 2, ['__proto__x']: 3 })).toEqual({
    '[redacted: github-token]': 1,
    '[redacted: github-token] 2': 2,
    __proto__x: 3,
  })
})

test('a value without secrets is the same object', () => {
  const value = { a: ['b', { c: 'd' }] }
  expect(redactor.json(value)).toBe(value)
})

// Assembled from pieces, so that no secret scanner finds a key here.
const privateKey = ['PRIVATE', 'KEY'].join(' ')

const githubToken = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`
const password = ['Tr0ub4dor', '3'].join('&')

test('a secret is replaced by a marker with its kind', () => {
  expect(redactor.text(`export GITHUB_TOKEN=${githubToken} # mine`)).toBe(
    'export GITHUB_TOKEN=[redacted: github-token] # mine',
  )
})

test('if a secret is recognized by its context, the context stays', () => {
  expect(redactor.text(`db: postgres://app:${password}@db:5432/app\npassword: "${password}"`)).toBe(
    'db: postgres://app:[redacted: url-password]@db:5432/app\npassword: "[redacted: password]"',
  )
})

test('the credentials of a header are recognized although another secret follows them', () => {
  const credentials = Buffer.from('user:E').toString('base64')
  const header = `Authorization: 'Basic ${credentials} ${'wPyRHOO9YSJ7oBm2oNxe'.repeat(3)}`
  expect(redactor.text(header)).toContain(`Authorization: 'Basic [redacted: basic-credentials] `)
})

test('a password ends where a URL follows it, whether the password of that is a secret or not', () => {
  const url = 'redis://:qNMChUuONPbWGs@cache:6379/0'
  expect(redactor.text(`password: mbNaPZ1QiZqdf7g&${url}`)).toBe(
    'password: [redacted: password]&redis://:[redacted: url-password]@cache:6379/0',
  )
  expect(redactor.text('password: mbNaPZ1QiZqdf7g&redis://cache')).toBe('password: [redacted: password]&redis://cache')
  expect(redactor.text('password=http://cache1/A0')).toBe('password=http://cache1/A0')
})

test.each(['\u00a0', '\u1680', '\u2003', '\u2028', '\u3000', '\ufeff'])(
  'a password ends at the space %j, however much follows',
  (space) => {
    const text = `DB_PASS=hunter2${space}${'x'.repeat(300)}`
    expect(redactor.text(text)).toBe(`DB_PASS=[redacted: password]${space}${'x'.repeat(300)}`)
  },
)

test('text without secrets is returned unchanged', () => {
  const text = 'nothing here, ünïcödé 🙂 \ud800 included'
  expect(redactor.text(text)).toBe(text)
})

test('redacting twice changes nothing, however secrets are combined', () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = randomFrom(seed)
  const joints = [
    ...['', '', ' ', '\n', '=', ': ', '"', '-', '_', 'token=', 'password: ', '://a:', '@', '[redacted: ', ']'],
    ...['\u00a0', '\u2003', '\ufeff', 'PASS=', 'PWD=hunter2', 'DB_PASS=word', '&', '(', 'é'],
  ]
  const changed = Array.from({ length: 1500 }, () =>
    Array.from({ length: 4 }, () => {
      const { text, secret } = plant(pick(secretShapes, random), random)
      const whole = random() < 0.5 ? text : secret
      return (random() < 0.2 ? whole.slice(0, Math.floor(random() * whole.length)) : whole) + pick(joints, random)
    }).join(''),
  ).filter((text) => redactor.text(redactor.text(text)) !== redactor.text(text))
  expect({ seed, changed }).toEqual({ seed, changed: [] })
})

describe('a truncated key', () => {
  const lines = Array.from({ length: 6 }, (_, index) => `MIIE${String(index).repeat(4)}${'aB3+'.repeat(14)}`)
  const begin = `-----BEGIN RSA ${privateKey}-----`
  const end = `-----END RSA ${privateKey}-----`

  it('is redacted up to its end', () => {
    expect(redactor.text(`$ head key.pem\n${begin}\n${lines.join('\n')}\n$ echo done`)).toBe(
      '$ head key.pem\n[redacted: private-key]\n$ echo done',
    )
  })

  it('does not include the next one', () => {
    expect(redactor.text(`${begin}\n${lines.join('\n')}\n${end}\nand\n${begin}\n${lines.join('\n')}\n${end}\n`)).toBe(
      '[redacted: private-key]\nand\n[redacted: private-key]\n',
    )
  })

  it('is ignored if only its first line is mentioned', () => {
    const text = `if (pem.startsWith('${begin}')) return parse(pem.slice(27))`
    expect(redactor.text(text)).toBe(text)
  })

  it.each([
    ['quoted in JSON', (line: string) => `${line}\\n`],
    ['in a diff', (line: string) => `+${line}\n`],
    ['indented', (line: string) => `    ${line}\n`],
    ['in lines of code', (line: string) => `  "${line}\\n" +\n`],
  ])('and one %s is found', (_, write) => {
    const text = [begin, ...lines, end].map(write).join('')
    expect(lines.filter((line) => redactor.text(text).includes(line))).toEqual([])
  })
})

describe('a known value', () => {
  const value = 'plain words + "quotes" & ümlaut'
  const knowing = createRedactor({ secrets: { MY_SECRET: value } })

  it.each([
    ['as it is', value],
    ['in JSON', JSON.stringify(value).slice(1, -1)],
    ['in a URL', encodeURIComponent(value)],
    ['as bytes', Buffer.from(value).toString('latin1')],
  ])('is replaced %s', (_, written) => {
    expect(knowing.text(`before ${written} after`)).toBe('before [redacted: MY_SECRET] after')
  })

  it.each(['', 'a', 'ab', 'abc'])('is replaced in base64, after %j', (before) => {
    const encoded = Buffer.from(`${before}${value}:more`).toString('base64')
    const decoded = Buffer.from(knowing.text(encoded).replace(/\[.*\]/, ''), 'base64').toString('latin1')
    expect(knowing.text(encoded)).toContain('[redacted: MY_SECRET]')
    expect(decoded).not.toContain('words')
  })

  it('is ignored if it is a common word', () => {
    const short = createRedactor({ secrets: { SHORT: 'main', MARKER: 'redacted: github' } })
    expect(short.text(`main ${githubToken}`)).toBe('main [redacted: github-token]')
  })

  it('is the longer one if one begins with another', () => {
    const both = createRedactor({ secrets: { ONE: 'first-value', TWO: 'first-value-and-more' } })
    expect(both.text('first-value-and-more, first-value')).toBe('[redacted: TWO], [redacted: ONE]')
  })
})

test('the environment contributes the values whose names mark them as secret', () => {
  expect(
    secretsOf({
      API_KEY: 'abc-123-def',
      PATH: '/usr/bin:/bin',
      SSH_AUTH_SOCK: '/run/agent.sock',
      TOKEN_LIMIT: '100000',
      KEYBOARD: 'de-latin1-x',
    }),
  ).toEqual({ API_KEY: 'abc-123-def' })
})

describe('allowed values stay', () => {
  it('by the name of a known value, in any context', () => {
    const allowing = createRedactor({ secrets: { GITHUB_TOKEN: githubToken }, allow: ['GITHUB_TOKEN'] })
    expect(allowing.text(`it is ${githubToken}`)).toBe(`it is ${githubToken}`)
  })

  it('by the name of a variable in text', () => {
    const allowing = createRedactor({ allow: ['TEST_DB_PASSWORD'] })
    const text = `TEST_DB_PASSWORD=${password}\n`
    expect(allowing.text(`${text}DB_PASSWORD=${password}`)).toBe(`${text}DB_PASSWORD=[redacted: password]`)
  })

  it('by the hash of the value', () => {
    const allowing = createRedactor({
      secrets: { A: password },
      allow: [allowanceOf(githubToken), allowanceOf(password)],
    })
    expect(allowing.text(`${githubToken} ${password}`)).toBe(`${githubToken} ${password}`)
  })
})
