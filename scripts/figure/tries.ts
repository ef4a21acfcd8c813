/** How often a time is taken that is longer than its limit: whatever else the machine does only ever adds to it, so the shortest counts. */
export const maxTries = 4
