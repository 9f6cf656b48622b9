/** Claims on until there are enough, or no more are found. */
export async function claimOneByOne<C>(
  limit: number,
  claimOne: () => Promise<C | undefined>,
): Promise<readonly C[]> {
  const claims: C[] = [];
  try {
    while (claims.length < limit) {
      const claim = await claimOne();
      if (claim === undefined) break;
      claims.push(claim);
    }
    return claims;
  } catch (error) {
    // What was claimed before is worked on; the error comes again if it is there to stay.
    if (claims.length > 0) return claims;
    throw error;
  }
}
