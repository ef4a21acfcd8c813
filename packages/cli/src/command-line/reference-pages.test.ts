import { expect, test } from 'vitest'
import { commands } from '../cli.ts'
import { exitCodeMeanings, exitCodes } from './exit-code.ts'
import { commandsPage, exitCodesPage } from './reference-pages.ts'

test('the reference of the commands is what the table says (`npx vitest run -u` writes it anew)', async () => {
  await expect(commandsPage(commands)).toMatchFileSnapshot('../../../../docs/reference/commands.md')
})

test('so is that of the exit codes, and every code has a meaning', async () => {
  expect(exitCodeMeanings.map(({ code }) => code)).toEqual(Object.values(exitCodes))
  await expect(exitCodesPage()).toMatchFileSnapshot('../../../../docs/reference/exit-codes.md')
})
