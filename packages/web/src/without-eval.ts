import { config } from 'zod'

// The policy of the server forbids code from text. Schemas try it when they are made, so this must be imported before them.
config({ jitless: true })
