import { z } from 'zod'

const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)

/** As the store has it: it becomes the name of a folder. */
export const sessionParameter = z.object({ id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/) })
export const messageParameters = sessionParameter.extend({ msg_id: id })
export const requestParameters = sessionParameter.extend({ request_id: id })
export const entryParameters = sessionParameter.extend({ entry_id: id })
export const blobParameters = sessionParameter.extend({ sha256: z.string().regex(/^[0-9a-f]{64}$/) })
