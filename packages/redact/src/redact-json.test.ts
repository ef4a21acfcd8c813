import type { Message } from '@tapetree/session'
import { describe, expect, it, test } from 'vitest'
import { createRedactor } from './redactor.ts'

const redactor = createRedactor()
const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`
const random = 'Zk3v9QpL7xWm2RtY8sBn4'

test('all that is said in a message is redacted', () => {
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

describe('what belongs to a provider stays', () => {
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

  it('but a picture that is found by its address is text', () => {
    const source = { type: 'url', mediaType: 'image/png', data: `https://x/?k=${token}` }
    expect(redactor.json(source)).toEqual({ ...source, data: 'https://x/?k=[redacted: github-token]' })
  })

  it('and a sentence is no signature', () => {
    expect(redactor.json({ signature: `signed with ${token}` })).toEqual({
      signature: 'signed with [redacted: github-token]',
    })
  })
})

test('a value is known by its key', () => {
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
