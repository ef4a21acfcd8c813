import { expect, test } from 'vitest'
import { permissionText } from './permission-text.ts'

const request = { requestId: 'r', tool: 'bash', options: [] }

test('a command of several lines is shown in full, with every reason below it', () => {
  const command = 'git fetch &&\nnpm ci'
  const title = `Run in /code: ${command}\n\`git\`: it does not only read.\n\`npm\`: it does not only read.`
  expect(permissionText({ ...request, title, input: { command } })).toEqual({
    what: `Run in /code: ${command}`,
    why: '`git`: it does not only read.\n`npm`: it does not only read.',
    input: [],
  })
})

test('if the argument is not found in the text, the last line is the reason', () => {
  const title = 'Fetch a page\nIt is not known.'
  expect(permissionText({ ...request, title })).toEqual({ what: 'Fetch a page', why: 'It is not known.', input: [] })
})
