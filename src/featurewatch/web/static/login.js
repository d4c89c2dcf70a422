// A link from another site brings no cookie (SameSite=Strict), so the form is shown to whoever has a
// session too. The page's own request has the cookie, and so has the navigation that follows it.
const KEY = "featurewatch-login";
if (!location.pathname.endsWith("/login")) {
  const response = await fetch("login", { method: "HEAD" });
  if (response.status === 204 && sessionStorage.getItem(KEY) !== location.href) {
    sessionStorage.setItem(KEY, location.href);
    location.replace(location.href);
  } else {
    sessionStorage.removeItem(KEY);
  }
}
